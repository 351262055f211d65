"""When a loop ends: a model of all its subtasks, with the real heads, entries, tails, channels and
coordinator, and every delay a draw of lots."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.iteration_head import ROUND_PAUSE_S, IterationHeadOperator, IterationSource
from flinkpy.connectors.source_api.coordinator import SourceCoordinator
from flinkpy.core.elements import (
    BEYOND_TIME,
    MAX_TIMESTAMP,
    EndOfData,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import EngineError, FlinkpyError, ProgramError
from flinkpy.core.futures import Future
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.operators.base import InputStatus
from flinkpy.operators.context import OperatorContext, TaskInfo
from flinkpy.operators.loops import feedback
from flinkpy.operators.loops.feedback import FeedbackChannel, InputEnded, RoundPassed, open_channels
from flinkpy.operators.loops.iteration import IterationEntryOperator, IterationTailOperator
from flinkpy.runtime.valve import WatermarkValve
from tests.operators.harness import ManualTimers


class Recorder:
    """An output that keeps everything, in order."""

    def __init__(self) -> None:
        self.elements: list[Any] = []

    def emit(self, batch: Any) -> None:
        self.elements.append(batch)

    def emit_side(self, tag_id: str, batch: Any) -> None: ...

    def emit_control(self, element: Any) -> None:
        self.elements.append(element)

    def take(self) -> list[Any]:
        taken, self.elements = self.elements, []
        return taken


class Loop:
    """One loop as the cluster runs it. Records are numbers: how often they still go round."""

    def __init__(
        self,
        parallelism: int,
        max_wait_s: float = 0.0,
        links: dict[int, list[int]] | None = None,
        attempt: int = 0,
    ) -> None:
        self.parallelism = parallelism
        self.timers = ManualTimers()
        self.attempt = attempt
        # from head and entry to bodies
        self.links = links or {subtask: list(range(parallelism)) for subtask in range(parallelism)}
        self.to_head: list[tuple[int, Any]] = []
        self.to_coordinator: list[tuple[int, Any]] = []
        self.failures: list[BaseException] = []
        source = IterationSource(max_wait_s)
        self.coordinator = SourceCoordinator(OperatorId("head"), source, parallelism, self)
        self.coordinator.start()
        self.outputs: dict[tuple[str, int], Recorder] = {}
        self.heads = [
            self._opened("head", subtask, IterationHeadOperator(source, "loop"), attempt)
            for subtask in range(parallelism)
        ]
        self.entries = [
            self._opened("entry", subtask, IterationEntryOperator("loop"), attempt)
            for subtask in range(parallelism)
        ]
        self.tails = [
            self._opened("tail", subtask, IterationTailOperator("loop"), attempt)
            for subtask in range(parallelism)
        ]
        # To each body the channels from heads and entries, and its valve; the body leads to the
        # tail of its number.
        self.channels: list[dict[tuple[str, int], deque[Any]]] = [
            {
                (kind, subtask): deque()
                for kind in ("head", "entry")
                for subtask in range(parallelism)
                if body in self.links[subtask]
            }
            for body in range(parallelism)
        ]
        self.valves = [WatermarkValve(len(channels)) for channels in self.channels]
        self.ended = [False] * parallelism
        self.passed = 0

    def send_event(self, subtask: int, event: Any) -> None:
        self.to_head.append((subtask, event))

    def run_in_background(self, function: Callable[[], Any]) -> Future[Any]:
        return Future()

    def schedule(self, delay_s: float, action: Callable[[], None]) -> None:
        """No iteration asks for it."""

    def fail_job(self, error: BaseException) -> None:
        self.failures.append(error)

    def _opened(self, kind: str, subtask: int, operator: Any, attempt: int) -> Any:
        info = TaskInfo(
            "job",
            kind,
            ExecutionAttemptId(JobId("job"), JobVertexId(kind), subtask, attempt),
            self.parallelism,
            128,
        )
        output = self.outputs[kind, subtask] = Recorder()
        operator.wake_up = lambda: None
        operator.setup(
            OperatorContext(
                OperatorId(kind),
                kind,
                None,
                info,
                self.timers.clock,
                self.timers,
                run_in_task=lambda action: action(),
                send_operator_event=lambda event: self.to_coordinator.append((subtask, event)),
            ),
            output,
        )
        operator.initialize_state(None)
        operator.open()
        return operator

    # -- what may happen next ----------------------------------------------------------------------

    def poll(self, subtask: int, lots: random.Random) -> None:
        if not self.ended[subtask] and self.heads[subtask].emit_next() is InputStatus.END_OF_INPUT:
            self.ended[subtask] = True
            self.outputs["head", subtask].emit_control(EndOfData())
        self.spread("head", subtask, lots)

    def spread(self, kind: str, subtask: int, lots: random.Random) -> None:
        for element in self.outputs[kind, subtask].take():
            for body in (
                [lots.choice(self.links[subtask])]
                if isinstance(element, RowBatch)
                else self.links[subtask]
            ):
                self.channels[body][kind, subtask].append(element)

    def read(self, body: int, channel: tuple[str, int]) -> None:
        element, tail = self.channels[body][channel].popleft(), self.tails[body]
        number, valve = list(self.channels[body]).index(channel), self.valves[body]
        if isinstance(element, RowBatch):
            self.passed += len(element)
            again = [value - 1 for value in element.values if value > 0]
            if again:
                tail.process_batch(RowBatch(again, element.timestamps))
            return
        outcome = (
            valve.ended(number)
            if isinstance(element, EndOfData)
            else valve.watermark_from(number, element)
        )
        for combined in outcome:
            tail.process_watermark(combined) if isinstance(
                combined, Watermark
            ) else tail.process_watermark_status(combined)

    def end_input(self, subtask: int, values: list[int], lots: random.Random) -> None:
        """The rest of the input, and its end."""
        entry = self.entries[subtask]
        for value in values:
            entry.process_batch(RowBatch([value]))
        entry.process_watermark(Watermark(MAX_TIMESTAMP))
        entry.finish()
        self.outputs["entry", subtask].emit_control(EndOfData())
        self.spread("entry", subtask, lots)

    def events(self, lots: random.Random) -> Iterator[Any]:
        """One way each for what could happen now; messages between two stay in order, all others
        overtake each other."""
        for subtask in range(self.parallelism):
            yield lambda subtask=subtask: self.poll(subtask, lots)
        for body, channels in enumerate(self.channels):
            for channel, elements in channels.items():
                if elements:
                    yield lambda body=body, channel=channel: self.read(body, channel)
        for messages, deliver in (
            (self.to_head, self._to_head),
            (self.to_coordinator, self._to_coordinator),
        ):
            for subtask in {to for to, _ in messages}:
                yield lambda messages=messages, deliver=deliver, subtask=subtask: deliver(
                    subtask, _first_of(messages, subtask)
                )

    def _to_coordinator(self, subtask: int, event: Any) -> None:
        self.coordinator.handle_event(subtask, event, self.attempt)

    def _to_head(self, subtask: int, event: Any) -> None:
        if not self.ended[subtask]:
            self.heads[subtask].handle_operator_event(event)

    @property
    def inside(self) -> int:
        under_way: int = sum(
            len(element)
            for channels in self.channels
            for elements in channels.values()
            for element in elements
            if isinstance(element, RowBatch)
        )
        for head in self.heads:
            under_way += head._reading.channel.records
        return under_way

    def close(self) -> None:
        for operator in (*self.heads, *self.entries, *self.tails):
            operator.close()


def _first_of(messages: list[tuple[int, Any]], subtask: int) -> Any:
    number = next(number for number, (to, _) in enumerate(messages) if to == subtask)
    return messages.pop(number)[1]


TOPOLOGIES: dict[str, Any] = {
    "all to all": lambda parallelism: None,
    "forward": lambda parallelism: {subtask: [subtask] for subtask in range(parallelism)},
    "ring": lambda parallelism: {
        subtask: sorted({subtask, (subtask + 1) % parallelism}) for subtask in range(parallelism)
    },
    "one way": lambda parallelism: {
        subtask: sorted({subtask, min(subtask + 1, parallelism - 1)})
        for subtask in range(parallelism)
    },
}


@pytest.mark.parametrize("topology", TOPOLOGIES)
@given(
    st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=1, max_size=4), st.integers(0, 2**32)
)
def test_a_loop_ends_and_never_while_something_is_in_it(
    topology: str, inputs: list[list[int]], seed: int
) -> None:
    lots = random.Random(seed)
    loop = Loop(len(inputs), links=TOPOLOGIES[topology](len(inputs)))
    waiting = dict(enumerate(inputs))
    try:
        for _ in range(20_000):
            possible = list(loop.events(lots))
            possible += [
                lambda subtask=subtask: loop.end_input(subtask, waiting.pop(subtask), lots)
                for subtask in list(waiting)[:1]
            ]
            lots.choice(possible)()
            loop.timers.advance(ROUND_PAUSE_S / 4)
            if any(loop.ended):
                assert not waiting
                assert loop.inside == 0, "it ended with records inside"
            if all(loop.ended):
                break
        assert all(loop.ended)
        assert loop.passed == sum(value + 1 for values in inputs for value in values)
        assert loop.failures == []
    finally:
        loop.close()
    assert open_channels() == 0


def settle(loop: Loop, lots: random.Random, steps: int = 400) -> None:
    for _ in range(steps):
        lots.choice(list(loop.events(lots)))()


def test_the_loop_waits_as_long_as_it_was_told_for_what_timers_may_give() -> None:
    lots = random.Random(1)
    loop = Loop(2, max_wait_s=5.0)
    for subtask in range(2):
        loop.end_input(subtask, [1], lots)
    settle(loop, lots)
    loop.timers.advance(4.9)
    settle(loop, lots)
    assert not any(loop.ended)
    loop.tails[0].process_batch(RowBatch([0]))  # a timer in the loop
    settle(loop, lots)
    loop.timers.advance(4.9)
    settle(loop, lots)
    assert not any(loop.ended)
    loop.timers.advance(0.2)
    settle(loop, lots)
    loop.timers.advance(5.1)
    settle(loop, lots)
    assert all(loop.ended)
    with pytest.raises(
        ProgramError, match=r"1 records came back to tail when the loop had ended.*max_wait_time"
    ):
        loop.tails[0].process_batch(RowBatch([0]))
    loop.close()


def test_a_head_that_failed_begins_anew_and_the_others_wait_for_its_input() -> None:
    lots = random.Random(2)
    loop = Loop(2)
    loop.end_input(0, [2], lots)
    settle(loop, lots)
    loop.coordinator.subtask_reset(0, 0)
    loop.coordinator.subtask_reset(1, 0)
    loop.close()
    again = Loop(2, attempt=1)
    again.coordinator.close()
    again.coordinator = loop.coordinator
    loop.to_head = again.to_head
    again.end_input(1, [3], lots)
    settle(again, lots)
    assert not any(again.ended), "subtask 0 has not ended its input in this attempt"
    again.end_input(0, [2], lots)
    for _ in range(20):
        settle(again, lots, 100)
        again.timers.advance(ROUND_PAUSE_S)
    assert all(again.ended)
    assert again.passed == 3 + 4
    again.close()


# -- channel, entry and tail -----------------------------------------------------------------------


def test_the_channel_joins_what_belongs_together_and_wakes_a_head_that_found_nothing() -> None:
    channel, woken = FeedbackChannel(), []
    channel.listen(lambda: woken.append(len(channel)))
    channel.put(RowBatch([1]))
    assert woken == []
    for item in (
        RowBatch([2, 3]),
        RowBatch([4], [40]),
        RowBatch([5], [50]),
        RoundPassed(1, 5),
        RowBatch([6]),
    ):
        channel.put(item)
    found: list[Any] = []
    while (taken := channel.take()) is not None:
        found.append(channel.take_batch(taken, 3) if isinstance(taken, RowBatch) else taken)
    assert found == [
        RowBatch([1, 2, 3]),
        RowBatch([4, 5], [40, 50]),
        RoundPassed(1, 5),
        RowBatch([6]),
    ]
    channel.put(InputEnded())
    channel.put(InputEnded())
    assert woken == [1]


def test_batches_that_went_in_stay_as_they_were() -> None:
    channel, first = FeedbackChannel(), RowBatch([1], [10])
    for batch in (first, RowBatch([2], [20])):
        channel.put(batch)
    assert channel.take_batch(first if channel.take() is first else RowBatch([]), 9) == RowBatch(
        [1, 2], [10, 20]
    )
    assert first == RowBatch([1], [10])


def test_the_entry_takes_no_input_while_much_is_on_its_way_back() -> None:
    loop, lots, called = Loop(1), random.Random(3), []
    loop.entries[0].set_listener(lambda: called.append(loop.heads[0]._reading.channel.records))
    assert loop.entries[0].available
    loop.tails[0].process_batch(RowBatch([0] * feedback.ENOUGH_RECORDS))
    loop.tails[0].process_batch(RowBatch([0]))
    assert not loop.entries[0].available
    for _ in range(10):
        loop.poll(0, lots)
    assert called == [1] or called == [0]
    assert loop.entries[0].available
    loop.close()


def test_the_entry_keeps_the_end_of_event_time_and_idleness_to_itself() -> None:
    loop = Loop(1)
    for watermark in (Watermark(5), Watermark(MAX_TIMESTAMP)):
        loop.entries[0].process_watermark(watermark)
    loop.entries[0].process_watermark_status(WatermarkStatus(idle=True))
    assert loop.outputs["entry", 0].take() == [Watermark(5)]
    assert loop.heads[0].emit_next() is InputStatus.NOTHING_AVAILABLE
    assert loop.outputs["head", 0].take() == [Watermark(BEYOND_TIME)]
    loop.close()


def test_a_tail_without_its_head_says_so() -> None:
    loop = Loop(1)
    tail = IterationTailOperator("another loop")
    tail.setup(loop.tails[0].context, Recorder())  # type: ignore[arg-type]
    tail.open()
    tail.process_watermark(Watermark(7))
    with pytest.raises(EngineError, match="not in one process"):
        tail.process_watermark(Watermark(BEYOND_TIME))
    tail.close()
    tail.close()
    loop.close()
    assert open_channels() == 0


@pytest.mark.parametrize("direction", ["to the head", "to the coordinator"])
def test_what_was_never_agreed_is_an_error(direction: str) -> None:
    loop, lots = Loop(1), random.Random(4)
    settle(loop, lots, 30)
    if direction == "to the head":
        loop.coordinator.send_event_to_reader(0, "hello")
        with pytest.raises(FlinkpyError, match="'hello'"):
            settle(loop, lots, 30)
    else:
        loop.heads[0]._reading._context.send_source_event("hello")
        settle(loop, lots, 30)
        assert "'hello'" in str(loop.failures[0])
    loop.close()
