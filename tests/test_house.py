"""The rules of the house that a tool can read off the files: who holds whom, how large a class and
a folder may be, and one meaning for each name.

``docs/decisions/`` says why an exception stands in one of the tables below.
"""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from itertools import takewhile
from statistics import median

from tests.house_files import (
    FILES,
    ROOT,
    TEXTS,
    is_path_of_pyflink,
    statements_below,
    statements_in,
    trees,
)

CLASS_STATEMENTS = 250
FOLDER_FILES, MEDIAN_FOLDER = 15, 12
PARAMETERS, CALLABLES, ATTRIBUTES = 7, 2, 15
COLUMNS = 100
TO_A_TOOL = re.compile(r"  # (type: ignore|noqa)\b.*$")

FACADES = {  # classes whose methods are PyFlink's: docs/decisions/pyflink-facades.md
    "flinkpy.columns.expression.Expression",
    "flinkpy.common.configuration.Configuration",
    "flinkpy.common.execution_config.ExecutionConfig",
    "flinkpy.datastream.checkpoint_config.CheckpointConfig",
}
EXCEPTIONS = {  # a class that is made from more and is one idea all the same, and why
    # their arguments are those of the verbs that users write, by name
    "flinkpy.connectors.files.reading.csv.csv_source.CsvSource": "the arguments of read_csv",
    "flinkpy.connectors.files.reading.json_source.JsonLinesSource": "the arguments of read_json",
    "flinkpy.connectors.files.writing.file_formats.CsvFormat": "the arguments of write_csv",
    "flinkpy.connectors.files.writing.file_sink.FileSink": "the arguments of FileSink",
    # what an error says, each part by name; it is pickled, and made in one place
    "flinkpy.core.errors.UserCodeError": "what is said of a function that failed",
    "flinkpy.testing.simulation.cluster.SimulatedCluster": "a whole cluster, and what disturbs it",
    # of the data path: what they read with each batch is their own, one lookup away
    "flinkpy.network.writer.PartitionWriter": "gathers batches for the channels of a partition",
    "flinkpy.runtime.task.Task": "a task's state, its thread, and all that it closes at the end",
    "flinkpy.windowing.general.window_operator.WindowOperator": "what the parts of windows share",
    # of tests: they remember all that was seen
    "flinkpy.testing.connectors.sink_world.SinkWorld": "a sink's writers, and what they were fed",
    "flinkpy.testing.simulation.stream_surroundings.TaskSurroundings": "what a model task calls",
    "flinkpy.testing.simulation.stream_tasks.StreamTaskModel": "a task in miniature",
}
ROLES = {  # a name that several rooms have, and the one thing it means in all of them
    "__init__": "what a package is",
    "__main__": "what `python -m` runs",
    "port": "what others need to know of a room: its interfaces",
}


def imported(module: str) -> Iterator[str]:
    """The project's modules it imports: at the top, late in a function, or for its types only."""
    for node in statements_below(trees()[module]):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield from [
                    each
                    for each in (name if name in FILES else node.module,)
                    if each in FILES and each != module
                ]


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for module, tree in trees().items():
        yield from (
            (f"{module}.{node.name}", node)
            for node in statements_below(tree)
            if isinstance(node, ast.ClassDef)
        )


def test_no_files_import_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({module: set(imported(module)) for module in FILES}).prepare()
        circle = []
    except CycleError as error:
        circle = error.args[1]
    assert circle == []


def shared_names(ones: list[str], others: list[str]) -> int:
    """With how many names both begin."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ones, others)))


def test_no_two_rooms_of_a_floor_import_each_other() -> None:
    """What two folders of one package need of each other belongs below both."""
    arrows = {
        (".".join(ones[:shared]), ones[shared], others[shared])
        for module in FILES
        for ones in (module.split("."),)
        for others in (each.split(".") for each in imported(module))
        for shared in (shared_names(ones, others),)
        if 1 < shared < min(len(ones), len(others))
    }
    both_ways = {
        f"{floor}: {one} and {other}"
        for floor, one, other in arrows
        if one < other and (floor, other, one) in arrows
    }
    assert both_ways == set()


def test_no_class_outgrows_its_room() -> None:
    too_large = []
    for name, node in classes():
        statements = statements_in(node)
        if name not in FACADES and statements > CLASS_STATEMENTS:
            too_large.append(f"{name}: {statements} statements")
    assert too_large == []
    assert {name for name, _ in classes()} >= FACADES


def constructor_of(node: ast.ClassDef) -> list[ast.arg]:
    """The parameters of its constructor."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            return [*method.args.args[1:], *method.args.kwonlyargs]
    return []


def attributes_of(node: ast.ClassDef) -> set[str]:
    """What its methods store in it."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }


def is_callable(parameter: ast.arg) -> bool:
    return parameter.annotation is not None and "Callable" in ast.unparse(parameter.annotation)


def test_a_class_is_one_idea_made_from_few_things() -> None:
    """What shows that a class is two ideas is its constructor and its fields, not its length. The
    answer is a port that it needs, or a record that is one thing; or a reason in the table."""
    made_from_many = {}
    for name, node in classes():
        parameters, attributes = constructor_of(node), attributes_of(node)
        callables = sum(map(is_callable, parameters))
        counted = (len(parameters), callables, len(attributes))
        if any(found > most for found, most in zip(counted, (PARAMETERS, CALLABLES, ATTRIBUTES))):
            made_from_many[name] = (
                f"{len(parameters)} parameters, {callables} callables, {len(attributes)} attributes"
            )
    assert {name: why for name, why in made_from_many.items() if name not in EXCEPTIONS} == {}
    assert EXCEPTIONS.keys() - made_from_many.keys() == set(), "these are none any more"


def test_a_line_is_read_at_one_glance() -> None:
    """The formatter breaks code at 100 columns, but not texts and examples. What a line's end says
    to a tool does not count."""
    assert [
        f"{module}:{number}"
        for module, text in TEXTS.items()
        for number, line in enumerate(text.splitlines(), 1)
        if len(TO_A_TOOL.sub("", line)) > COLUMNS
    ] == []


def test_a_folder_is_a_room_and_not_a_hall() -> None:
    sizes = Counter(
        path.parent.relative_to(ROOT)
        for module, path in FILES.items()
        if path.name != "__init__.py" and not is_path_of_pyflink(module)
    )
    assert {str(folder): count for folder, count in sizes.items() if count > FOLDER_FILES} == {}
    assert median(sizes.values()) <= MEDIAN_FOLDER


def test_a_name_of_a_file_means_one_thing() -> None:
    modules = defaultdict(list)
    for module, path in FILES.items():
        if path.stem not in ROLES and not is_reexport(module) and not is_path_of_pyflink(module):
            modules[path.stem].append(module)
    assert {name: where for name, where in modules.items() if len(where) > 1} == {}


def is_reexport(module: str) -> bool:
    """Whether it only gives names of other files a public path."""
    body = trees()[module].body
    return all(
        isinstance(node, (ast.Import, ast.ImportFrom))
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        or ast.unparse(node) == "publish(__name__)"
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__")
        for node in body
    )


# The modules, by their last name, in which batches of columns begin, whose rows are inserts.
# Everywhere else a batch is made of another one by that one's methods (take, slice, filter,
# with_columns, ...), or is given its kinds: docs/decisions/row-kinds.md.
BEGINNINGS_OF_BATCHES = {
    "column_source": "a source",
    "record_decoding": "a source",
    "arrow_tables": "a source",
    "datagen": "a source",
    "block_source": "a source",
    "python_source": "a source",
    "aggregate_of_all": "results of what refuses kinds",
    "column_operators": "fewer or more rows, where kinds are refused",
    "group_aggregate": "results of what refuses kinds",
    "state_tables": "results of what refuses kinds",
    "simulated_ends": "a source",
    "columnar_join": "results of what refuses kinds",
    "column_phases": "results of what refuses kinds",
    "column_slices": "results of what refuses kinds",
    "relational_operator": "results of what refuses kinds",
}
# Those that know for themselves whether there are kinds.
CAREFUL_WITH_KINDS = {"elements", "payloads"}


def calls_of(function: str) -> Iterator[tuple[str, ast.Call]]:
    for module, tree in trees().items():
        for node in ast.walk(tree) if function in TEXTS[module] else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == function:
                yield module.rpartition(".")[2], node


def has_argument(call: ast.Call, name: str, at: int) -> bool:
    return len(call.args) > at or any(each.arg == name for each in call.keywords)


def test_whoever_makes_a_batch_says_its_rows_kinds_or_begins_it() -> None:
    silent = {
        module for module, call in calls_of("ColumnBatch") if not has_argument(call, "kinds", 2)
    }
    assert sorted(silent - CAREFUL_WITH_KINDS) == sorted(BEGINNINGS_OF_BATCHES), (
        "make the batch of the other one with its methods, or say here why it begins"
    )


def test_whoever_makes_rows_of_a_batch_hands_its_kinds_over() -> None:
    silent = [
        f"{module}:{call.lineno}"
        for module, call in calls_of("rows_of_batch")
        if not has_argument(call, "kinds", 1)
        and "batch" in ast.unparse(call.args[0])
        and ".data" in ast.unparse(call.args[0])
    ]
    assert silent == []
