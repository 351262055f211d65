"""Sources that block, and sinks of every kind."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from flinkpy.core.elements import MIN_TIMESTAMP, Element, Watermark, WatermarkStatus
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.base import InputStatus
from flinkpy.operators.functions import RuntimeContext, SinkFunction, SourceContext, SourceFunction
from flinkpy.operators.sinks.legacy_source import BoundedHandOver, LegacySourceOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator
from tests.operators.harness import ChainHarness, linear, run


class Scripted(SourceFunction):
    """Runs what it is given."""

    def __init__(self, script: Callable[[SourceContext], None]) -> None:
        self.script = script
        self.cancelled, self.closed = threading.Event(), threading.Event()

    def run(self, ctx: SourceContext) -> None:
        self.script(ctx)

    def cancel(self) -> None:
        self.cancelled.set()

    def close(self) -> None:
        self.closed.set()


class SourceHarness:
    """A legacy source asked for batches by the test, which waits to be woken."""

    def __init__(self, function: SourceFunction) -> None:
        self.operator = LegacySourceOperator(function)
        self.woken = threading.Event()
        self.operator.wake_up = self.woken.set
        self.harness = ChainHarness(linear(self.operator, inputs=0))

    def until_end(self) -> list[Element]:
        while True:
            self.woken.clear()
            status = self.operator.emit_next()
            if status is InputStatus.END_OF_INPUT:
                return self.harness.writers[0].elements
            if status is InputStatus.NOTHING_AVAILABLE:
                assert self.woken.wait(10)


def test_all_values_arrive_in_order_whatever_the_queue_holds() -> None:
    def script(ctx: SourceContext) -> None:
        for number in range(5_000):
            ctx.collect(number)

    function = Scripted(script)
    source = SourceHarness(function)
    source.until_end()
    assert source.harness.output == list(range(5_000))
    assert max(len(batch) for batch in source.harness.writers[0].elements) <= 4  # type: ignore[arg-type]
    source.harness.chain.close()
    assert function.closed.wait(5)
    assert not function.cancelled.is_set()


def test_timestamps_watermarks_and_idleness_keep_their_places() -> None:
    def script(ctx: SourceContext) -> None:
        ctx.collect("a")
        ctx.collect_with_timestamp("b", 5)
        ctx.emit_watermark(Watermark(5))
        ctx.collect_with_timestamp("c", 6)
        ctx.mark_as_temporarily_idle()
        ctx.collect("d")

    source = SourceHarness(Scripted(script))
    source.until_end()
    assert source.harness.writers[0].stamped == [("a", None), ("b", 5), ("c", 6), ("d", None)]
    assert source.harness.writers[0].controls == [
        Watermark(5),
        WatermarkStatus(idle=True),
        WatermarkStatus(idle=False),
    ]


def test_a_full_queue_holds_the_source_back_and_closing_releases_it() -> None:
    collected: list[int] = []

    def script(ctx: SourceContext) -> None:
        for number in range(1_000):
            ctx.collect(number)
            collected.append(number)

    function = Scripted(script)
    source = SourceHarness(function)
    while not source.operator._queue._sender_waits:  # the one place where the test must see inside
        source.woken.wait(0.01)
    assert len(collected) == 7  # two batches of four, the last one still waiting
    source.harness.chain.close()
    assert function.cancelled.is_set()
    assert function.closed.wait(5)
    assert len(collected) == 7


def test_an_error_in_run_comes_after_what_was_collected() -> None:
    def script(ctx: SourceContext) -> None:
        ctx.collect(1)
        raise OSError("connection lost")

    source = SourceHarness(Scripted(script))
    with pytest.raises(UserCodeError, match="connection lost"):
        source.until_end()
    assert source.harness.output == [1]


def test_an_exit_in_run_is_an_error_too_as_it_ends_the_sources_thread() -> None:
    def script(ctx: SourceContext) -> None:
        ctx.collect(1)
        raise SystemExit(3)

    source = SourceHarness(Scripted(script))
    with pytest.raises(UserCodeError, match="SystemExit: 3"):
        source.until_end()
    assert source.harness.output == [1]


def test_a_hungry_receiver_is_woken_once() -> None:
    woken: list[int] = []
    queue = BoundedHandOver(10, lambda: woken.append(1))
    queue.put("a")
    assert woken == []
    assert (queue.take(10), queue.take(10)) == (["a"], [])
    queue.put("b")
    queue.put("c")
    assert woken == [1]
    assert queue.take(1) == ["b"]
    assert len(queue) == 1


def test_what_has_no_run_is_no_source_function() -> None:
    with pytest.raises(ProgramError, match="has no run"):
        LegacySourceOperator(object())


WRITTEN: list[Any] = []


class Writes:
    def write(self, value: Any) -> None:
        WRITTEN.append(value)

    def flush(self) -> None:
        WRITTEN.append("flush")

    def close(self) -> None:
        WRITTEN.append("close")


class Invoked(SinkFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        WRITTEN.append("open")

    def invoke(self, value: Any, context: Any = None) -> None:
        WRITTEN.append(value)

    def close(self) -> None:
        WRITTEN.append("close")


class Batches:
    available = True

    def open(self, context: Any) -> None:
        WRITTEN.append(context.name)

    def write_batch(self, batch: Any) -> None:
        WRITTEN.extend(batch.values)

    def set_listener(self, on_available: Any) -> None:
        WRITTEN.append("listener")

    def finish(self) -> None:
        WRITTEN.append("finish")

    def close(self) -> None:
        WRITTEN.append("close")


@pytest.mark.parametrize(
    ("sink", "expected"),
    [
        (Writes(), [1, 2, "flush", "close"]),
        (Invoked(), ["open", 1, 2, "close"]),
        (Batches(), ["op 0", 1, 2, "finish", "close"]),
        (WRITTEN.append, [1, 2]),
    ],
)
def test_every_kind_of_sink_gets_its_values(sink: Any, expected: list[Any]) -> None:
    WRITTEN.clear()
    assert run([SinkOperator(sink)], [1, 2]) == []
    assert expected == WRITTEN


class Told(SinkFunction):
    # required, as a program may write it
    def invoke(self, value: Any, context: SinkFunction.Context) -> None:  # type: ignore[override]
        WRITTEN.append(
            (
                value,
                context.timestamp(),
                context.current_watermark(),
                context.current_processing_time(),
            )
        )


class Untold(SinkFunction):
    def invoke(self, value: Any) -> None:  # type: ignore[override]
        WRITTEN.append(value)


def test_a_sink_function_is_told_the_time_of_its_value_if_it_wants_to_know() -> None:
    WRITTEN.clear()
    harness = ChainHarness(linear(SinkOperator(Told())))
    now = harness.timers.now_ms()
    harness.push([1])
    harness.push([2, 3], timestamps=[20, 30])
    harness.control(Watermark(25))
    harness.push([4], timestamps=[40])
    assert [
        (1, None, MIN_TIMESTAMP, now),
        (2, 20, MIN_TIMESTAMP, now),
        (3, 30, MIN_TIMESTAMP, now),
        (4, 40, 25, now),
    ] == WRITTEN
    WRITTEN.clear()
    run([SinkOperator(Untold())], [1, 2])
    assert WRITTEN == [1, 2]


def test_a_sink_that_wants_a_pause_makes_the_chain_unavailable() -> None:
    sink: Any = Batches()
    harness = ChainHarness(linear(SinkOperator(sink)), open_it=False)
    harness.chain.set_listener(lambda: None)
    WRITTEN.clear()
    harness.chain.open()
    assert WRITTEN == ["op 0", "listener"]
    said = []
    for sink.available, harness.writers[0].available in (
        (True, True),
        (False, True),
        (True, False),
    ):
        said.append(harness.chain.available)
    assert said == [True, False, False]


def test_a_failing_sink_names_the_record() -> None:
    def refuse(value: Any) -> None:
        raise ValueError("full")

    with pytest.raises(UserCodeError) as caught:
        run([SinkOperator(refuse)], [7])
    assert caught.value.record == "7"
    with pytest.raises(ProgramError, match="is no sink"):
        SinkOperator(3)
