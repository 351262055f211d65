"""Loops through the API, on the embedded cluster: what goes round, when it ends, and what is
refused."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Duration, RestartStrategies, Row, Types, WatermarkStrategy
from flinkpy.core.elements import BEYOND_TIME, MAX_TIMESTAMP
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.datastream import (
    DataStream,
    KeyedProcessFunction,
    MapFunction,
    OutputTag,
    ProcessFunction,
    RuntimeContext,
    RuntimeExecutionMode,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.env.submission import stream_graph
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.operators.loops.feedback import open_channels


@pytest.fixture(params=[None, 1], ids=["one TaskExecutor", "a TaskExecutor each"])
def env(request: pytest.FixtureRequest) -> StreamExecutionEnvironment:
    options: dict[str, Any] = {"execution.target": "embedded"}
    if request.param:
        options["taskmanager.numberOfTaskSlots"] = request.param
    return StreamExecutionEnvironment.get_execution_environment(options)


@pytest.fixture(autouse=True)
def no_channel_is_left() -> Any:
    yield
    assert open_channels() == 0


def results(stream: Any) -> list[Any]:
    with stream.execute_and_collect() as records:
        return list(records)


def down_to_zero(stream: DataStream, shuffle: str = "forward") -> DataStream:
    """(name, n) goes round n times; gives (name, 0)."""
    iteration = stream.iterate()
    moved: DataStream = (
        iteration.key_by(lambda pair: pair[1])
        if shuffle == "key_by"
        else getattr(iteration, shuffle)()
    )
    smaller = moved.map(lambda pair: (pair[0], pair[1] - 1))
    iteration.close_with(smaller.filter(lambda pair: pair[1] > 0))
    return smaller.filter(lambda pair: pair[1] <= 0)


@pytest.mark.parametrize("parallelism", [1, 2, 4])
@pytest.mark.parametrize("shuffle", ["forward", "key_by", "rebalance", "shuffle"])
def test_nothing_is_lost_however_records_go_round(
    env: StreamExecutionEnvironment, parallelism: int, shuffle: str
) -> None:
    env.set_parallelism(parallelism)
    numbers = env.from_sequence(1, 300).map(lambda number: (number, 1 + number % 17))
    assert sorted(results(down_to_zero(numbers, shuffle))) == [
        (number, 0) for number in range(1, 301)
    ]


@pytest.mark.parametrize(("ends", "middle"), [(2, 3), (3, 2), (4, 3), (1, 2)])
def test_operators_in_the_loop_may_have_another_parallelism_than_its_ends(
    env: StreamExecutionEnvironment, ends: int, middle: int
) -> None:
    env.set_parallelism(ends)
    iteration = env.from_sequence(1, 200).map(lambda number: (number, 1 + number % 9)).iterate()
    smaller = iteration.rescale().map(lambda pair: (pair[0], pair[1] - 1)).set_parallelism(middle)
    iteration.close_with(smaller.rescale().filter(lambda pair: pair[1] > 0))
    assert sorted(results(smaller.filter(lambda pair: pair[1] <= 0))) == [
        (number, 0) for number in range(1, 201)
    ]


def test_columns_become_rows_in_the_loop(env: StreamExecutionEnvironment) -> None:
    import pyarrow as pa

    env.set_parallelism(1)
    iteration = env.from_arrow(pa.table({"n": [3, 1]})).iterate()
    steps = iteration.map(lambda row: Row(n=row.n - 1))
    iteration.close_with(steps.filter(lambda row: row.n > 0))
    assert Counter(row.n for row in results(steps)) == {2: 1, 1: 1, 0: 2}


def test_a_loop_whose_input_is_empty_ends(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    assert results(down_to_zero(env.from_sequence(1, 5).filter(lambda number: False))) == []


def test_a_loop_may_make_more_records_than_it_gets(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    iteration = env.from_sequence(1, 4).map(lambda number: 9).iterate()
    halves = iteration.rebalance().flat_map(lambda depth: [depth - 1, depth - 1])
    iteration.close_with(halves.filter(lambda depth: depth > 0))
    assert results(halves.filter(lambda depth: depth == 0)) == [0] * (4 * 2**9)


def test_state_in_the_loop_sees_every_round(env: StreamExecutionEnvironment) -> None:
    class Rounds(KeyedProcessFunction):
        def open(self, runtime_context: RuntimeContext) -> None:
            self.rounds = runtime_context.get_state(ValueStateDescriptor("rounds", Types.INT()))

        def process_element(self, value: tuple[str, int], ctx: Any) -> Any:
            self.rounds.update((self.rounds.value() or 0) + 1)
            yield value[0], value[1] - 1, self.rounds.value()

    env.set_parallelism(3)
    names = [("a", 4), ("b", 2), ("c", 7), ("a", 3)]
    iteration = env.from_collection(names).rebalance().map(lambda pair: pair).iterate()
    steps = iteration.key_by(lambda pair: pair[0]).process(Rounds())
    iteration.close_with(steps.filter(lambda step: step[1] > 0).map(lambda step: step[:2]))
    most = Counter[str]()
    for name, _, rounds in results(steps):
        most[name] = max(most[name], rounds)
    assert most == {"a": 7, "b": 2, "c": 7}


def test_what_goes_back_may_come_from_a_side_output_and_from_several_streams(
    env: StreamExecutionEnvironment,
) -> None:
    again = OutputTag("again", Types.INT())

    class Step(ProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            yield (again, value - 2) if value % 2 == 0 and value > 0 else value

    env.set_parallelism(2)
    iteration = env.from_sequence(0, 20).iterate()
    steps = iteration.process(Step(), Types.INT())
    odd = steps.filter(lambda value: value > 1).map(lambda value: value - 1)
    iteration.close_with(steps.get_side_output(again).union(odd))
    assert Counter(value for value in results(steps) if value <= 1) == {0: 20, 1: 1}


def test_loops_can_follow_each_other_and_stand_side_by_side(
    env: StreamExecutionEnvironment,
) -> None:
    env.set_parallelism(2)
    once = down_to_zero(env.from_sequence(1, 40).map(lambda number: (number, 3)))
    twice = down_to_zero(once.map(lambda pair: (pair[0], 5)), "key_by")
    beside = down_to_zero(once.map(lambda pair: (-pair[0], 2)))
    assert sorted(results(twice.union(beside))) == [
        (number, 0) for number in range(-40, 41) if number
    ]


class Times(ProcessFunction):
    """Which records came with which timestamp, at which watermark."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        yield value, ctx.timestamp(), ctx.timer_service().current_watermark()


def test_event_time_in_the_loop_is_the_inputs_and_ends_when_the_loop_does(
    env: StreamExecutionEnvironment,
) -> None:
    class OnTime(KeyedProcessFunction):
        def process_element(self, value: int, ctx: Any) -> Any:
            ctx.timer_service().register_event_time_timer(ctx.timestamp())
            assert ctx.timer_service().current_watermark() < MAX_TIMESTAMP
            if value > 0:
                yield value - 1

        def on_timer(self, timestamp: int, ctx: Any) -> Any:
            assert ctx.timer_service().current_watermark() >= timestamp
            yield "timer", timestamp

    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value: value * 1000
    )
    iteration = (
        env.from_collection([1, 2, 3])
        .assign_timestamps_and_watermarks(strategy)
        .set_parallelism(1)
        .iterate()
    )
    steps = iteration.key_by(lambda value: 0).process(OnTime()).set_parallelism(1)
    iteration.close_with(steps.filter(lambda value: isinstance(value, int)).set_parallelism(1))
    found = results(steps.process(Times()).set_parallelism(1))
    assert {(value, stamp) for value, stamp, _ in found if isinstance(value, int)} == {
        # what comes back keeps its timestamp
        (0, 1000),
        (1, 2000),
        (0, 2000),
        (2, 3000),
        (1, 3000),
        (0, 3000),
    }
    assert {value[1] for value, _, _ in found if not isinstance(value, int)} == {1000, 2000, 3000}
    assert all(watermark < BEYOND_TIME + 1000 for _, _, watermark in found)


def test_a_watermark_generator_inside_the_loop_does_not_keep_it_from_ending(
    env: StreamExecutionEnvironment,
) -> None:
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_seconds(1)
    ).with_timestamp_assigner(lambda pair: pair[1])
    env.set_parallelism(2)
    iteration = env.from_sequence(1, 50).map(lambda number: (number, 4)).iterate()
    steps = iteration.assign_timestamps_and_watermarks(strategy).map(
        lambda pair: (pair[0], pair[1] - 1)
    )
    iteration.close_with(steps.filter(lambda pair: pair[1] > 0))
    assert sorted(results(steps.filter(lambda pair: pair[1] == 0))) == [
        (number, 0) for number in range(1, 51)
    ]


class Later(KeyedProcessFunction):
    """Gives a record on after a while."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept", Types.INT()))

    def process_element(self, value: int, ctx: Any) -> None:
        self.kept.update(value)
        ctx.timer_service().register_processing_time_timer(
            ctx.timer_service().current_processing_time() + 40
        )

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield self.kept.value() - 1  # type: ignore[operator]  # it was set


@pytest.mark.wide
def test_max_wait_time_gives_processing_time_timers_their_time(
    env: StreamExecutionEnvironment,
) -> None:
    iteration = env.from_collection([3]).iterate(Duration.of_millis(1500))
    later = iteration.key_by(lambda value: 0).process(Later()).set_parallelism(1)
    iteration.close_with(later.filter(lambda value: value > 0).set_parallelism(1))
    assert results(later) == [2, 1, 0]


@pytest.mark.parametrize("parallelism", [1, 2])
def test_a_failure_in_the_loop_begins_it_anew(
    env: StreamExecutionEnvironment, tmp_path: Path, parallelism: int
) -> None:
    class FailsOnce(MapFunction):
        def map(self, value: tuple[int, int]) -> tuple[int, int]:
            if value == (7, 2):
                try:
                    (tmp_path / "failed").mkdir()
                except FileExistsError:
                    return value
                raise ValueError("once")
            return value

    env.set_parallelism(parallelism)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(2, 0))
    iteration = env.from_sequence(1, 20).map(lambda number: (number, 4)).iterate()
    steps = iteration.map(FailsOnce()).map(lambda pair: (pair[0], pair[1] - 1))
    iteration.close_with(steps.filter(lambda pair: pair[1] > 0))
    found = set(steps.filter(lambda pair: pair[1] == 0).execute_and_collect(limit=1000))
    assert found == {(number, 0) for number in range(1, 21)}
    assert (tmp_path / "failed").exists()


def test_what_a_function_in_the_loop_raises_fails_the_job(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    iteration = env.from_sequence(1, 5).iterate()
    steps = iteration.map(lambda number: 1 // (number - 1))
    iteration.close_with(steps.filter(lambda number: False))
    with pytest.raises(JobExecutionError, match="ZeroDivisionError"):
        results(steps)


def test_a_loop_over_an_endless_input_can_be_cancelled(env: StreamExecutionEnvironment) -> None:
    env.set_parallelism(2)
    iteration = env.generate(lambda index: 3).iterate()
    steps = iteration.rebalance().map(lambda number: number - 1)
    iteration.close_with(steps.filter(lambda number: number > 0))
    with steps.filter(lambda number: number == 0).execute_and_collect() as records:
        assert [next(records) for _ in range(50)] == [0] * 50


# -- building --------------------------------------------------------------------------------------

HERE = r"test_iterate\.py:\d+: .*"


@pytest.fixture
def plain() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment({"execution.target": "embedded"})


def test_a_loop_that_is_not_closed_is_refused_at_execute_with_its_line(
    plain: StreamExecutionEnvironment,
) -> None:
    plain.from_collection([1]).iterate().map(lambda value: value).print()
    with pytest.raises(
        ProgramError,
        match=(
            r"the loop begun by iterate\(\) at .*test_iterate\.py:\d+ has no way back: call "
            r"close_with"
        ),
    ):
        plain.execute()


def test_a_loop_nobody_reads_is_refused_too(plain: StreamExecutionEnvironment) -> None:
    plain.from_collection([1]).print()
    plain.from_collection([1]).iterate()
    with pytest.raises(ProgramError, match="has no way back"):
        plain.get_execution_plan()


def test_a_program_with_a_loop_is_automatically_a_streaming_one(
    plain: StreamExecutionEnvironment,
) -> None:
    plain.set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.AUTOMATIC)
    assert results(down_to_zero(plain.from_collection([("a", 3)]))) == [("a", 0)]


def test_a_loop_in_a_batch_program_is_refused(plain: StreamExecutionEnvironment) -> None:
    plain.set_parallelism(1).set_runtime_mode(RuntimeExecutionMode.BATCH)
    iteration = plain.from_collection([1]).iterate()
    iteration.close_with(iteration.map(identity))
    with pytest.raises(
        ProgramError,
        match=(
            r"the loop begun by iterate\(\) at .*test_iterate.py:\d+ cannot run in runtime mode "
            r"BATCH"
        ),
    ):
        plain.execute()


def identity(value: Any) -> Any:
    return value


@pytest.mark.parametrize(
    ("feedback", "message"),
    [
        (
            lambda env, it: it.map(identity).set_parallelism(2),
            r"the parallelism of the feedback stream is 2, .* input 1; call set_parallelism\(1\)",
        ),
        (lambda env, it: env.from_collection([1]), "takes a stream made from this iteration"),
        (lambda env, it: it, "there is no operator in this loop"),
        (lambda env, it: it.rebalance(), "there is no operator in this loop"),
        (lambda env, it: [1], "takes a stream"),
        (
            lambda env, it: StreamExecutionEnvironment().from_collection([1]),
            "different environments",
        ),
    ],
)
def test_feedback_that_cannot_be_is_refused(
    plain: StreamExecutionEnvironment, feedback: Any, message: str
) -> None:
    plain.set_parallelism(1)
    iteration = plain.from_collection([1]).iterate()
    with pytest.raises(ProgramError, match=HERE + message):
        iteration.close_with(feedback(plain, iteration))


def test_a_loop_is_closed_once(plain: StreamExecutionEnvironment) -> None:
    plain.set_parallelism(1)
    iteration = plain.from_collection([1]).iterate()
    body = iteration.map(identity)
    assert iteration.close_with(body) is body
    with pytest.raises(
        ProgramError, match=HERE + r"closed already \(.*test_iterate\.py:\d+\); .* union"
    ):
        iteration.close_with(body)


def test_a_loop_in_a_loop_is_refused(plain: StreamExecutionEnvironment) -> None:
    plain.set_parallelism(1)
    outer = plain.from_collection([1]).iterate()
    inner = outer.map(identity).iterate()
    body = inner.map(identity)
    inner.close_with(body.filter(identity))
    with pytest.raises(ProgramError, match=HERE + "lies inside this one"):
        outer.close_with(body)


@pytest.mark.parametrize("wait", [-1, "soon", True])
def test_a_wait_that_is_none_is_refused(plain: StreamExecutionEnvironment, wait: Any) -> None:
    with pytest.raises(ProgramError):
        plain.from_collection([1]).iterate(wait)


def test_checkpoints_are_refused_where_there_is_a_loop(plain: StreamExecutionEnvironment) -> None:
    plain.set_parallelism(1).enable_checkpointing(1000)
    iteration = plain.from_collection([1]).iterate()
    iteration.close_with(iteration.map(identity))
    with pytest.raises(
        ProgramError,
        match=HERE + r"not possible with the loop begun by iterate\(\) at .*test_iterate\.py",
    ):
        plain.execute()


def test_the_plan_of_a_loop_has_its_ends_side_by_side_in_one_slot(
    plain: StreamExecutionEnvironment,
) -> None:
    from flinkpy.core.ids import IdFactory
    from flinkpy.graph.job_graph_generator import build_job_graph
    from flinkpy.graph.plan import draw_plan

    plain.set_parallelism(2)
    numbers = plain.from_sequence(1, 3).slot_sharing_group("numbers").map(identity)
    iteration = numbers.iterate()
    body = iteration.map(identity).slot_sharing_group("body")
    iteration.close_with(body)
    nodes = {node["type"]: node for node in json.loads(plain.get_execution_plan())["nodes"]}
    ends = [name for name in nodes if "Iteration" in name]
    assert sorted(name.split("-")[0] for name in ends) == [
        "IterationEntry",
        "IterationSink",
        "Source: IterationSource",
    ]
    assert "predecessors" not in nodes[next(name for name in ends if "Source" in name)]
    graph = build_job_graph(stream_graph(plain.program, None), IdFactory().job_id())
    assert "IterationSink" in draw_plan(stream_graph(plain.program, None))
    located = [vertex for vertex in graph.vertices if vertex.co_location_group is not None]
    assert {
        (vertex.slot_sharing_group, vertex.parallelism, len(vertex.operators)) for vertex in located
    } == {("numbers", 2, 1)}
    assert len(located) == 3
