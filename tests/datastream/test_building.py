"""Calls of the API become the right transformations and plans; mistakes are refused at the user's
line."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import Configuration, RestartStrategies, Row, Types, WatermarkStrategy
from flinkpy.core.errors import ConfigurationError, ProgramError
from flinkpy.core.options.engine import RuntimeMode
from flinkpy.core.program.launch_context import (
    ProgramAborted,
    launch_configuration,
    set_launch_context,
)
from flinkpy.datastream import (
    CheckpointingMode,
    CoMapFunction,
    DataStream,
    FilterFunction,
    KeyedProcessFunction,
    MapFunction,
    MemorySize,
    OutputTag,
    ProcessFunction,
    RuntimeExecutionMode,
    SlotSharingGroup,
    SourceFunction,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.table.expressions import col


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def nodes(env: StreamExecutionEnvironment) -> dict[str, Any]:
    return {node["type"]: node for node in json.loads(env.get_execution_plan())["nodes"]}


def inputs(node: Any) -> list[str]:
    return [each["ship_strategy"] for each in node["predecessors"]]


NAMES = MapStateDescriptor("m", Types.STRING(), Types.LONG())


class Add(MapFunction):
    def map(self, value: int) -> int:
        return value + 1


class Both(CoMapFunction):
    def map1(self, value: Any) -> Any:
        return value

    def map2(self, value: Any) -> Any:
        return value


class Split(ProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value


class Tag(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Any:
        yield ctx.get_current_key(), value


def test_a_program_is_drawn_with_pyflinks_names(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    stream = (
        env.from_collection([1, 2]).map(Add()).filter(lambda x: x > 1).flat_map(lambda x: [x, x])
    )
    stream.key_by(lambda x: x).reduce(lambda a, b: a + b).print()
    plan = nodes(env)
    assert list(plan) == [
        "Source: Collection Source",
        "Map",
        "Filter",
        "FlatMap",
        "Reduce",
        "Sink: Print to Std. Out",
    ]
    assert [plan[name]["parallelism"] for name in plan] == [1, 2, 2, 2, 2, 2]
    assert [inputs(plan[name]) for name in ("Map", "Filter", "Reduce")] == [
        ["REBALANCE"],
        ["FORWARD"],
        ["HASH"],
    ]


@pytest.mark.parametrize(
    "call", ["rebalance", "rescale", "shuffle", "broadcast", "global_", "forward"]
)
def test_partitionings_are_written_onto_the_edge(
    env: StreamExecutionEnvironment, call: str
) -> None:
    getattr(env.from_collection([1]), call)().map(lambda x: x)
    assert inputs(nodes(env)["Map"]) == [call.rstrip("_").upper()]


def test_a_custom_partitioning_takes_functions_or_objects(env: StreamExecutionEnvironment) -> None:
    env.from_collection([1]).partition_custom(
        lambda key, channels: key % channels, lambda x: x
    ).map(lambda x: x)
    assert inputs(nodes(env)["Map"]) == ["CUSTOM"]


def test_unions_connections_and_side_outputs(env: StreamExecutionEnvironment) -> None:
    one, two = env.from_collection([1]), env.from_collection([2])
    one.union(two, one).map(lambda x: x).name("union reader")
    one.connect(two.rebalance()).map(Both()).name("co reader")
    split = one.process(Split()).name("split")
    split.get_side_output(OutputTag("odd", Types.INT())).map(lambda x: x).name("side reader")
    plan = nodes(env)
    assert inputs(plan["union reader"]) == ["FORWARD", "FORWARD", "FORWARD"]
    assert inputs(plan["co reader"]) == ["FORWARD", "REBALANCE"]
    assert plan["side reader"]["predecessors"][0]["id"] == plan["split"]["id"]
    assert split.get_side_output(OutputTag("odd", Types.INT())).get_type() == Types.INT()


def test_an_operator_takes_settings(env: StreamExecutionEnvironment) -> None:
    env.register_slot_sharing_group(
        SlotSharingGroup.builder("big")
        .set_cpu_cores(2)
        .set_task_heap_memory(MemorySize.of_mebi_bytes(1))
        .build()
    )
    stream = (
        env.from_collection([1])
        .map(lambda x: x)
        .name("m")
        .uid("u")
        .set_uid_hash("ab" * 16)
        .set_description("d")
        .set_parallelism(3)
        .set_max_parallelism(7)
        .set_buffer_timeout(5)
        .slot_sharing_group("big")
        .start_new_chain()
    )
    made = stream.recorded.transformation
    assert (
        made.name,
        made.uid,
        made.uid_hash,
        made.description,
        made.parallelism,
        made.max_parallelism,
    ) == ("m", "u", "ab" * 16, "d", 3, 7)
    assert (
        made.buffer_timeout_ms,
        made.slot_sharing_group,
        made.resources.cpus,
        made.resources.memory,
    ) == (5, "big", 2.0, 1 << 20)
    assert made.chaining is ChainingStrategy.HEAD
    assert stream.get_name() == "m"
    assert (
        stream.force_non_parallel().disable_chaining().recorded.transformation.max_parallelism == 1
    )
    assert stream.print().name("out").get_name() == "Sink: out"


def test_types_are_kept_where_they_stay_and_forgotten_where_they_do_not(
    env: StreamExecutionEnvironment,
) -> None:
    pair = Types.TUPLE([Types.STRING(), Types.INT()])
    stream = env.from_collection([("a", 1)], pair)
    assert stream.filter(lambda x: True).key_by(lambda x: x[0]).sum(1).get_type() == pair
    assert stream.project(1, 0).get_type() == Types.TUPLE([Types.INT(), Types.STRING()])
    assert stream.map(lambda x: x).get_type() == Types.PICKLED_BYTE_ARRAY()
    assert stream.map(lambda x: x[1], Types.INT()).get_type() == Types.INT()


def test_a_stream_knows_whether_it_is_columnar_and_its_schema(
    env: StreamExecutionEnvironment,
) -> None:
    stream = env.from_arrow(pa.table({"k": ["a"], "n": [1]}))
    selected = stream.filter(col("n") > 0).select("k", (col("n") * 0.5).alias("half"))
    assert (
        stream.is_columnar,
        selected.is_columnar,
        selected.map(lambda row: row.k).is_columnar,
    ) == (True, True, False)
    assert selected.get_type() == Types.ROW_NAMED(["k", "half"], [Types.STRING(), Types.DOUBLE()])
    counted = stream.key_by("k").aggregate(col("n").count.alias("records"))
    assert counted.get_type() == Types.ROW_NAMED(["k", "records"], [Types.STRING(), Types.LONG()])
    assert stream.key_by("k").sum("n").is_columnar
    assert stream.key_by("k").max_by("n").is_columnar
    assert not stream.key_by(lambda row: row.k).sum("n").is_columnar
    assert stream.union(stream).is_columnar
    assert not stream.union(env.from_collection([Row(1)])).is_columnar


def test_a_conversion_runs_where_its_reader_runs(env: StreamExecutionEnvironment) -> None:
    stream = env.from_arrow(pa.table({"n": [1]})).set_parallelism(1)
    stream.map(lambda row: row.n).set_parallelism(3).slot_sharing_group("other")
    plan = nodes(env)
    assert (plan["Columns to rows"]["parallelism"], inputs(plan["Map"])) == (3, ["FORWARD"])


def test_declared_rows_become_columns_where_an_expression_meets_them(
    env: StreamExecutionEnvironment,
) -> None:
    declared = Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    stream = env.from_collection([("a", 1), {"k": "b", "n": 2}], declared)
    assert stream.filter(col("n") > 1).get_type() == declared
    assert "Rows to columns" in nodes(env)


MISTAKES: list[tuple[Any, str | None]] = [
    (lambda s: s.map(3), "map\\(\\) takes a function, a lambda or a MapFunction"),
    (lambda s: s.map(Add), "write Add\\(\\)"),
    (lambda s: s.map(lambda a, b: a), "map\\(\\) calls its function with 1 argument"),
    (lambda s: s.filter(Add()), "takes a FilterFunction, a Add has no filter"),
    (lambda s: s.map(lambda x: x, Types.INT), r"call it: Types.INT\(\)"),
    (lambda s: s.map(lambda x: x, "int"), "is no type"),
    (lambda s: s.key_by(lambda x: x).reduce(lambda a: a), "with 2 arguments"),
    (lambda s: s.key_by(lambda x: x).sum("b"), "no such field"),
    (lambda s: s.key_by(lambda x: x).sum(5), "have 2 fields"),
    (lambda s: s.key_by(lambda x: x).sum(0), "sum needs numbers"),
    (lambda s: s.key_by(lambda x: x).sum(None), "takes the position"),
    (lambda s: s.key_by(lambda x: x).process(Split()), "takes a KeyedProcessFunction"),
    (lambda s: s.key_by(lambda x: x, lambda x: x), "one function, or one or several names"),
    (lambda s: s.key_by("k").rebalance(), r"rebalance\(\) is not for a keyed stream"),
    (lambda s: s.key_by(lambda x: x).broadcast(), r"broadcast\(\) is not for a keyed stream"),
    (
        lambda s: s.key_by(lambda x: x).partition_custom(lambda key, n: 0, lambda x: x),
        r"partition_custom\(\) is not for a keyed stream",
    ),
    (
        lambda s: s.select("k", "n").key_by("k").partition_custom(lambda key, n: 0, lambda x: x),
        r"partition_custom\(\) is not for a keyed stream",
    ),
    (
        lambda s: s.select("k", "n").key_by("k").broadcast(NAMES),
        r"broadcast\(\) is not for a keyed",
    ),
    (lambda s: s.rebalance().name("x"), "belongs to an operator"),
    (lambda s: s.rebalance().get_side_output(OutputTag("a")), "belongs to an operator"),
    (lambda s: s.get_side_output("odd"), "takes an OutputTag"),
    (lambda s: s.union(3), "takes streams"),
    (lambda s: s.connect(s).map(Add()), "has no map1"),
    (lambda s: s.connect(s).process(lambda x: x), "has no process_element1"),
    (lambda s: s.project("a"), "field positions"),
    (lambda s: s.project(7), "have 2 fields"),
    (lambda s: s.select("n"), None),
    (lambda s: s.select("m"), "no column 'm'"),
    (lambda s: s.select(col("n") + 1), "has no name; give it one with"),
    (lambda s: s.select("n", col("k").alias("n")), "two columns would be called 'n'"),
    (lambda s: s.filter(col("n") + 1), "needs a truth value"),
    (lambda s: s.filter(col("b").sum), "aggregates belong into"),
    (lambda s: s.map(lambda x: x).filter(col("n") > 1), "no declared row type"),
    (lambda s: s.key_by(lambda x: x).aggregate(col("n").sum), "needs a key of columns"),
    (lambda s: s.key_by("k").aggregate(col("n")), "takes aggregates such as"),
    (lambda s: s.key_by("k", "k").aggregate(col("n").sum), "the key has the column 'k' twice"),
    (lambda s: s.map_batches(lambda: 1), "with 1 argument"),
    (lambda s: s.map_batches(len, "polars"), '"arrow" or "pandas"'),
    (lambda s: s.sink_to(3), "is neither"),
    (lambda s: s.add_sink(lambda: 1), "with 1 argument"),
    (lambda s: s.set_parallelism(0), "from 1 on"),
    (lambda s: s.set_max_parallelism(1 << 16), "at most 32768"),
    (lambda s: s.name(""), "not empty"),
    (lambda s: s.set_buffer_timeout(-2), "milliseconds"),
    (lambda s: s.set_uid_hash("x"), "32 hex digits"),
    (lambda s: s.slot_sharing_group(3), "a name or"),
    (lambda s: s.execute_and_collect(limit=0), "limit"),
    (lambda s: s.partition_custom(lambda key: 0, lambda x: x), "with 2 arguments"),
]


@pytest.mark.parametrize(("mistake", "message"), MISTAKES)
def test_a_mistake_is_refused_at_the_line_of_the_call(
    env: StreamExecutionEnvironment, mistake: Any, message: str | None
) -> None:
    stream = env.from_collection(
        [("a", 1)], Types.ROW_NAMED(["k", "n"], [Types.STRING(), Types.LONG()])
    )
    if message is None:
        mistake(stream)
        return
    with pytest.raises((ProgramError, ConfigurationError), match=message) as caught:
        mistake(stream)
    line = inspect.getsourcelines(mistake)[1]
    assert str(caught.value).startswith(f"{__file__}:{line}: ")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda e: e.from_collection("abc"), "takes a list"),
        (lambda e: e.from_collection([1, "x"], Types.INT()), "value 1 is not of the declared type"),
        (lambda e: e.from_source(3), "takes a Source object"),
        (lambda e: e.add_source(SourceFunction), "takes a SourceFunction object"),
        (lambda e: e.from_sequence(3, 1), "goes up"),
        (lambda e: e.from_arrow(3), "takes a pyarrow.Table"),
        (lambda e: e.set_parallelism(-3), "from 1 on"),
        (lambda e: e.set_runtime_mode("BATCH"), "takes a RuntimeExecutionMode"),
        (lambda e: e.configure({"paralelism.default": "2"}), "did you mean 'parallelism.default'"),
        (lambda e: e.configure({"parallelism.default": "two"}), "option parallelism.default"),
        (lambda e: e.enable_checkpointing(1), "at least 10 ms"),
        (lambda e: e.set_restart_strategy("none"), "one of RestartStrategies"),
        (lambda e: e.execute(), "no operators"),
        (lambda e: e.execute(3), "a job's name is text"),
        (lambda e: e.set_buffer_timeout(-5), "milliseconds"),
        (lambda e: e.register_slot_sharing_group("a"), "takes a SlotSharingGroup"),
        (
            lambda e: e.get_checkpoint_config().set_checkpoint_timeout(5),
            "checkpointing.timeout: 5 ms is too small; it must be at least 10 ms",
        ),
        (
            lambda e: e.get_checkpoint_config().set_externalized_checkpoint_retention(3),
            "option execution.checkpointing.externalized-checkpoint-ret",
        ),
        (
            lambda e: e.get_checkpoint_config().set_max_concurrent_checkpoints(0),
            "0 is too small; it must be at least 1",
        ),
    ],
)
def test_a_wrong_call_on_the_environment_is_refused_at_its_line(
    env: StreamExecutionEnvironment, mistake: Any, message: str
) -> None:
    with pytest.raises((ProgramError, ConfigurationError), match=message) as caught:
        mistake(env)
    assert str(caught.value).startswith(f"{__file__}:{inspect.getsourcelines(mistake)[1]}: ")


def test_a_transformation_knows_the_line_that_made_it(env: StreamExecutionEnvironment) -> None:
    line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
    stream = env.from_collection([1]).map(lambda x: x)
    assert stream.recorded.transformation.where == f"{__file__}:{line}"


def test_streams_of_two_environments_do_not_meet(env: StreamExecutionEnvironment) -> None:
    other = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(ProgramError, match="different environments"):
        env.from_collection([1]).union(other)


def test_options_are_set_by_code_over_those_of_the_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    set_launch_context({"parallelism.default": "5", "pipeline.name": "from outside"})
    try:
        env = StreamExecutionEnvironment.get_execution_environment()
        assert env.get_parallelism() == 5
        assert (
            env.configure(Configuration().set_integer("parallelism.default", 3)).get_parallelism()
            == 3
        )
        assert env.get_configuration().get_string("pipeline.name", "") == "from outside"
    finally:
        set_launch_context(None)
    monkeypatch.setenv("FLINKPY_CONF", '{"parallelism.default": 4}')
    assert StreamExecutionEnvironment.get_execution_environment().get_parallelism() == 4
    monkeypatch.setenv("FLINKPY_CONF", "[1]")
    with pytest.raises(ConfigurationError, match="JSON object"):
        launch_configuration()
    monkeypatch.setenv("FLINKPY_CONF", "{")
    with pytest.raises(ConfigurationError, match="not JSON"):
        launch_configuration()


def test_a_plan_listener_gets_the_graph_and_the_program_ends_there() -> None:
    seen: list[Any] = []
    set_launch_context({}, lambda graph, configuration: seen.append(graph.name))
    try:
        env = StreamExecutionEnvironment.get_execution_environment()
        env.from_collection([1]).print()
        with pytest.raises(ProgramAborted):
            env.execute("wanted")
    finally:
        set_launch_context(None)
    assert seen == ["wanted"]


def test_the_environment_keeps_its_options(
    env: StreamExecutionEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env.set_runtime_mode(RuntimeExecutionMode.BATCH).set_buffer_timeout(
        7
    ).disable_operator_chaining().set_max_parallelism(99)
    env.enable_checkpointing(5000, CheckpointingMode.AT_LEAST_ONCE).set_restart_strategy(
        RestartStrategies.fixed_delay_restart(1, 2)
    )
    env.get_checkpoint_config().enable_unaligned_checkpoints().set_min_pause_between_checkpoints(3)
    monkeypatch.setattr("sys.path", list(sys.path))
    for name in ("a.py", "b.py"):
        (tmp_path / name).touch()
        env.add_python_file(str(tmp_path / name))
    env.set_python_requirements("requirements.txt")
    values = env.get_configuration().to_dict()
    assert (
        env.get_buffer_timeout(),
        env.is_chaining_enabled(),
        env.get_max_parallelism(),
        env.get_checkpoint_interval(),
    ) == (7, False, 99, 5000)
    assert (env.get_checkpointing_mode(), env.is_unaligned_checkpoints_enabled()) == (
        CheckpointingMode.AT_LEAST_ONCE,
        True,
    )
    assert (values["python.files"], values["restart-strategy.type"]) == (
        f"{tmp_path}/a.py,{tmp_path}/b.py",
        "fixed-delay",
    )
    assert sys.path[0] == str(tmp_path)
    assert env.program.values["execution.runtime-mode"] is RuntimeMode.BATCH


def test_a_watermark_strategy_belongs_to_the_source_and_is_checked_there(
    env: StreamExecutionEnvironment,
) -> None:
    from flinkpy.connectors.memory.ranges import NumberSequenceSource

    assert isinstance(
        env.from_source(NumberSequenceSource(1, 2), WatermarkStrategy.no_watermarks(), "numbers"),
        DataStream,
    )
    assert (
        env.from_source(
            NumberSequenceSource(1, 2), WatermarkStrategy.for_monotonous_timestamps(), "numbers"
        ).get_name()
        == "Source: numbers"
    )
    with pytest.raises(ProgramError, match="takes a WatermarkStrategy"):
        env.from_source(NumberSequenceSource(1, 2), "monotonous", "numbers")  # type: ignore[arg-type]
    aligned = WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", timedelta(seconds=1)
    )
    stream = env.from_source(NumberSequenceSource(1, 2), aligned)
    with pytest.raises(ProgramError, match="only sources can be aligned"):
        stream.assign_timestamps_and_watermarks(aligned)


def test_a_filter_function_object_is_a_filter(env: StreamExecutionEnvironment) -> None:
    class Odd(FilterFunction):
        def filter(self, value: int) -> bool:
            return value % 2 == 1

    assert env.from_collection([1]).filter(Odd()).get_name() == "Filter"


def test_importing_the_api_is_quick_and_light() -> None:
    heavy = (
        "ray",
        "pyarrow",
        "numpy",
        "pandas",
        "pyspark",
        "yaml",
        "asyncio",
        "msgpack",
        "cloudpickle",
        "rocksdict",
        "ssl",
        "multiprocessing",
    )
    own = (
        "flinkpy.state.rocksdb.rocksdb_backend",
        "flinkpy.actors",
        "flinkpy.scheduler",
        "flinkpy.network",
        "flinkpy.spark",
        "flinkpy.cluster",
    )
    code = (
        "import sys, flinkpy.datastream; "
        f"print(sorted(m for m in sys.modules if m.split('.')[0] in {heavy} or "
        f"m.startswith({own})))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parent,
    )
    assert found.stdout.strip() == "[]"
