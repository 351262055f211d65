"""What a running job tells, and who may tell the control plane what: as a user, or a peer, would
find it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from flinkpy.common.job_client import JobClient
from flinkpy.datastream import DataStream, MapFunction, RuntimeContext, StreamExecutionEnvironment
from flinkpy.graph.hashes import operator_ids
from flinkpy.graph.stream_graph import build_stream_graph
from flinkpy.metrics import Counter
from flinkpy.operators.functions import SourceContext, SourceFunction
from tests.waiting import eventually

_GATE, _RETURN = threading.Event(), threading.Event()


class Words:
    """An accumulator of the program's own class."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def merge(self, other: Words) -> None:
        self.seen += other.seen


class Counting(MapFunction):
    """Counts in every way there is, and waits at the tenth record until the test lets it go on."""

    late: Counter

    def open(self, runtime_context: RuntimeContext) -> None:
        self.words = Words()
        runtime_context.add_accumulator("words", self.words)
        self.late = runtime_context.get_metrics_group().counter("late")
        runtime_context.get_metrics_group().gauge("size", lambda: len(self.words.seen))

    def map(self, value: int) -> int:
        self.words.seen.append(value)
        self.late.inc(2)
        return value


class Blocked(MapFunction):
    def map(self, value: int) -> bool:
        return _RETURN.wait(60)


class TenAndWait(SourceFunction):
    """Ten records, and then none until the test ends."""

    def run(self, ctx: SourceContext) -> None:
        for number in range(10):
            ctx.collect(number)
        _GATE.wait(60)

    def cancel(self) -> None:
        _GATE.set()


@pytest.fixture
def running() -> Iterator[JobClient]:
    """A job that has counted ten records, and waits for more."""
    _GATE.clear()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.add_source(TenAndWait(), "numbers").map(Counting()).name("counted").add_sink(
        lambda value: None
    )
    client = env.execute_async("told")
    try:
        yield client
    finally:
        client.cancel().result()
        assert client.get_job_execution_result().exception() is not None


@pytest.mark.finding("mechanisms F2")
def test_a_running_job_tells_its_accumulators(running: JobClient) -> None:
    def told() -> dict[str, Any]:
        return running.get_accumulators().result()

    eventually(lambda: "words" in told() and len(told()["words"].seen) == 10)
    assert told()["words"].seen == list(range(10))
    assert list(told()) == ["words"]  # the metrics are told elsewhere


@pytest.mark.finding("mechanisms F7")
def test_a_running_job_tells_its_metrics_and_how_its_time_goes(running: JobClient) -> None:
    def told() -> dict[str, Any]:
        return running.get_metrics().result()

    eventually(lambda: told().get("counted.0.late") == 20)
    metrics = told()
    assert (
        metrics["counted.0.size"],
        metrics["counted.0.numRecordsIn"],
        metrics["counted.0.numRecordsOut"],
    ) == (10, 10, 10)
    [task] = [
        name.removesuffix(".0.idleTimeMsPerSecond")
        for name in metrics
        if name.endswith(".0.idleTimeMsPerSecond")
    ]
    eventually(lambda: told()[f"{task}.0.idleTimeMsPerSecond"] >= 900)
    assert (
        told()[f"{task}.0.busyTimeMsPerSecond"] + told()[f"{task}.0.backPressuredTimeMsPerSecond"]
        <= 100
    )


@pytest.mark.finding("mechanisms F7")
def test_a_function_that_does_not_return_is_busy_and_its_job_is_drawn_so() -> None:
    _RETURN.clear()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    env.from_sequence(1, 3).map(Blocked()).add_sink(lambda value: None)
    client = env.execute_async("busy")
    try:
        eventually(
            lambda: any(
                value >= 900
                for name, value in client.get_metrics().result().items()
                if name.endswith("busyTimeMsPerSecond")
            )
        )
        eventually(lambda: "busy 9" in repr(client) or "busy 100 %" in repr(client))
    finally:
        _RETURN.set()
    assert client.get_job_execution_result().result().get_net_runtime() > 0


def _ids_of(*names: str) -> dict[str, str]:
    """The ids of two sources and of what reads their union, in the order they are written."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    makers: dict[str, Callable[[], DataStream]] = {
        "A": lambda: env.from_sequence(1, 3),
        "B": lambda: env.from_collection([1, 2]),
        "C": lambda: env.from_collection([3, 4]),
    }
    made = {name: makers[name]() for name in names}
    first, second = made.values()
    last = first.union(second).map(lambda value: value)
    last.add_sink(lambda value: None)
    ids = operator_ids(build_stream_graph(env.program.transformations))
    return {
        **{name: ids[stream.recorded.transformation.id] for name, stream in made.items()},
        "read": ids[last.recorded.transformation.id],
    }


@pytest.mark.finding("mechanisms F3")
@pytest.mark.parametrize(("one", "other"), [("A", "B"), ("B", "C")])
def test_the_sides_of_a_union_may_change_places_and_everybody_keeps_its_id(
    one: str, other: str
) -> None:
    assert _ids_of(one, other) == _ids_of(other, one)
    assert len(set(_ids_of(one, other).values())) == 3
