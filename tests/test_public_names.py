"""Every public name shows the public module that has it, and pickle finds it there."""

from __future__ import annotations

import importlib
import inspect
import pickle
import subprocess
import sys
import typing
from collections import defaultdict
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle
import pytest

from flinkpy.common import RowKind
from flinkpy.core.program import code
from flinkpy.core.program.public_names import module_of_definition, publish
from flinkpy.datastream import DataStream, MapFunction
from flinkpy.datastream.connectors.kafka import KafkaTopicPartition
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.graph.source_identity import described
from flinkpy.state.rocksdb.key_bytes import encode_key
from flinkpy.table.expressions import col
from tests.house_files import FILES, trees
from tests.test_architecture import is_public

Kind = type | FunctionType

# Errors keep their module, as what a log says of one must not depend on what was imported before.
# This one shows the module that defines it, because it has another name there: pickle looks in the module
# that a class shows for the class's own name.
OTHERWISE_NAMED = {"flinkpy.datastream.RuntimeExecutionMode"}


def has_names(module: str) -> bool:
    return any("__all__" in ast_names(node) for node in trees()[module].body)


def ast_names(node: Any) -> set[str]:
    return {target.id for target in getattr(node, "targets", ()) if hasattr(target, "id")}


MODULES = [module for module in FILES if is_public(module) and has_names(module)]


def public_modules_of_names() -> dict[Kind, list[str]]:
    """The public modules that have each class and function of flinkpy's in their ``__all__``."""
    found = defaultdict(list)
    for path in MODULES:
        module = importlib.import_module(path)
        for name in module.__all__:
            value = getattr(module, name)
            if (
                isinstance(value, type | FunctionType)
                and module_of_definition(value).startswith("flinkpy.")
                and not (inspect.isclass(value) and issubclass(value, BaseException))
                and f"{path}.{name}" not in OTHERWISE_NAMED
                and value.__name__ == name
            ):
                found[value].append(path)
    return found


NAMES = public_modules_of_names()


def name_of(value: Kind) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def test_every_public_name_shows_the_shortest_public_module_that_has_it() -> None:
    assert len(NAMES) > 250
    others = {
        name_of(value): modules
        for value, modules in NAMES.items()
        if value.__module__ != min(modules, key=lambda module: (module.count("."), module))
    }
    assert others == {}, "publish(__name__) is the last line of a public module"
    assert name_of(DataStream) == "flinkpy.datastream.DataStream"
    assert name_of(MapFunction) == "flinkpy.datastream.MapFunction"


def test_a_name_that_is_another_one_where_it_is_defined_is_known_to_be() -> None:
    assert {
        f"{path}.{name}"
        for path in MODULES
        for name, value in vars(importlib.import_module(path)).items()
        if name in importlib.import_module(path).__all__
        and isinstance(value, type | FunctionType)
        and value.__name__ != name
        and value.__module__.startswith("flinkpy.")
    } - {"flinkpy.datastream.execution_mode.RuntimeExecutionMode"} == OTHERWISE_NAMED


def test_pickle_finds_every_public_name_at_its_public_place_and_at_that_of_its_definition() -> None:
    for value in NAMES:
        pickled = pickle.dumps(value)
        assert value.__module__.encode() in pickled
        assert pickle.loads(pickled) is value
        assert getattr(sys.modules[module_of_definition(value)], value.__name__) is value


def test_public_names_travel_by_name_and_not_by_value() -> None:
    assert [name_of(value) for value in NAMES if len(cloudpickle.dumps(value)) > 200] == []


IMPORTED_LATE = ("pa", "SparkSession")  # at the top of a module for type checkers only


def name_not_found(value: Kind) -> str | None:
    """In its type hints."""
    try:
        typing.get_type_hints(value)
    except NameError as error:
        return error.name
    return None


def test_type_hints_are_found_where_the_class_is_defined() -> None:
    for value in NAMES:
        assert name_not_found(value) in (None, *IMPORTED_LATE), value


def test_keys_of_state_and_identities_of_sources_are_those_of_earlier_versions() -> None:
    assert b"flinkpy.common.types" in encode_key(RowKind.INSERT)
    assert b"flinkpy.connectors.kafka.kafka_offsets" in encode_key(KafkaTopicPartition("orders", 0))
    assert described(TumblingEventTimeWindows).startswith("flinkpy.windowing.assigners.")


def test_the_source_of_a_class_is_not_taken_from_another_file() -> None:
    with pytest.raises(OSError, match=r"source|class definition"):
        inspect.getsource(DataStream)
    assert "def map(" in inspect.getsource(DataStream.map)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Two public modules that have the same class."""

    class Thing:
        pass

    Thing.__module__, Thing.__qualname__ = "flinkpy.room.things", "Thing"
    made: list[Any] = [ModuleType("flinkpy.short"), ModuleType("flinkpy.short.longer")]
    for module in made:
        module.Thing, module.__all__ = Thing, ["Thing"]
        monkeypatch.setitem(sys.modules, module.__name__, module)
    return made


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_order_of_imports_does_not_matter(modules: list[Any], order: tuple[int, int]) -> None:
    for number in order:
        publish(modules[number].__name__)
    thing = modules[0].Thing
    assert (thing.__module__, module_of_definition(thing)) == (
        "flinkpy.short",
        "flinkpy.room.things",
    )


def test_what_is_not_flinkpys_or_has_another_name_keeps_its_module(modules: list[Any]) -> None:
    module = modules[0]
    module.Other, module.wait, module.__all__ = module.Thing, pytest.fail, ["Other", "wait"]
    before = pytest.fail.__module__
    publish(module.__name__)
    assert (module.Thing.__module__, pytest.fail.__module__) == ("flinkpy.room.things", before)


def test_the_code_of_a_program_makes_a_worker_import_what_it_needs_and_not_the_api() -> None:
    class Doubles(MapFunction):
        def map(self, value: int) -> int:
            return value * 2

    data = code.dumps([Doubles(), KafkaTopicPartition("orders", 0), TumblingEventTimeWindows, col])
    worker = (
        "import sys; from flinkpy.core.program import code; "
        f"found = code.loads({data!r}); print(found[0].map(4), found[1], found[2](10), "
        "'flinkpy.datastream' in sys.modules, 'flinkpy.table' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", worker], capture_output=True, text=True, check=True)
    assert run.stdout.split(" ", 1)[0] == "8"
    assert run.stdout.endswith("TumblingEventTimeWindows(10, 0) False False\n")
