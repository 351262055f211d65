from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.connectors.memory.ranges import CollectionSource, NumberSequenceSource, RangeSplit
from flinkpy.connectors.source_api.coordinator import SourceCoordinator
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.python_source import PythonSource, PythonSplit
from flinkpy.connectors.source_api.source import (
    CustomSourceEvent,
    NoMoreSplits,
    ReaderContext,
    ReaderRegistered,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitRequested,
    SplitsAdded,
)
from flinkpy.connectors.source_api.source_operator import SourceReaderOperator
from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.errors import EngineError, ProgramError, UserCodeError
from flinkpy.core.futures import Future
from flinkpy.core.ids import OperatorId
from flinkpy.core.program.code import dumps_data, loads
from flinkpy.operators.base import InputStatus
from flinkpy.state.snapshots.saved_state import SavedState, redistribute_all
from tests.connectors.harness import Collected, World, operator_context, read_all


class ManySplits(PythonSource):
    """Splits of different lengths, more of them than readers."""

    def __init__(self, lengths: list[int]) -> None:
        self.lengths = lengths

    def splits(self, parallelism: int) -> Iterator[tuple[int, int]]:
        return iter(enumerate(self.lengths))

    def read(self, split: tuple[int, int], position: int) -> Iterator[tuple[int, int]]:
        number, length = split
        return ((number, index) for index in range(position, length))

    @property
    def all(self) -> list[tuple[int, int]]:
        return [
            (number, index) for number, length in enumerate(self.lengths) for index in range(length)
        ]


LENGTHS = st.lists(st.integers(0, 30), max_size=12)


@settings(max_examples=200, deadline=None)
@given(
    lengths=LENGTHS,
    parallelism=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    doubled=st.sampled_from([0.0, 0.3, 1.0]),
)
def test_every_split_is_read_exactly_once_whatever_the_order_of_events(
    lengths: list[int], parallelism: int, seed: int, doubled: float
) -> None:
    source = ManySplits(lengths)
    assert sorted(read_all(source, parallelism, seed, doubled, batch_records=7)) == source.all


@settings(max_examples=200, deadline=None)
@given(
    lengths=LENGTHS,
    parallelism=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    when=st.lists(st.integers(0, 60), max_size=5),
)
def test_splits_of_a_failed_attempt_are_read_again_by_somebody(
    lengths: list[int], parallelism: int, seed: int, when: list[int]
) -> None:
    """What the failed attempt gave out is thrown away; what all last attempts gave out together is
    everything, once."""
    source = ManySplits(lengths)
    world = World(source, parallelism, seed, doubled=0.2, batch_records=7)
    for steps in when:
        for _ in range(steps):
            world.step()
        world.restart(world.random.randrange(parallelism))
    world.run()
    assert world.errors == []
    assert world.finished
    assert sorted(world.values) == source.all
    world.close()


@settings(max_examples=200, deadline=None)
@given(
    lengths=LENGTHS,
    parallelism=st.integers(1, 4),
    seed=st.integers(0, 10**6),
    steps=st.integers(0, 80),
)
def test_a_reader_restored_from_its_snapshot_goes_on_without_loss_or_doubles(
    lengths: list[int], parallelism: int, seed: int, steps: int
) -> None:
    source = ManySplits(lengths)
    world = World(source, parallelism, seed, batch_records=7)
    for _ in range(steps):
        world.step()
    second = world.checkpoint()
    before = world.values
    world.close()
    second.run()
    assert second.finished
    assert sorted(before + second.values) == source.all
    second.close()


@settings(max_examples=200, deadline=None)
@given(
    lengths=LENGTHS,
    before=st.integers(1, 5),
    after=st.integers(1, 5),
    seed=st.integers(0, 10**6),
    steps=st.integers(0, 80),
)
def test_splits_are_shared_out_to_another_number_of_readers_none_lost_or_doubled(
    lengths: list[int], before: int, after: int, seed: int, steps: int
) -> None:
    source = ManySplits(lengths)
    world = World(source, before, seed, batch_records=7)
    for _ in range(steps):
        world.step()
    second = world.checkpoint(after)
    read = world.values
    world.close()
    second.run()
    assert not second.errors
    assert second.finished
    assert sorted(read + second.values) == source.all
    second.close()


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.integers(1, 6))
def test_restored_readers_hold_the_splits_of_the_readers_before_in_equal_shares(
    held: list[int], after: int
) -> None:
    source, barrier = ManySplits([]), CheckpointBarrier(1, 0)

    def restored(
        snapshot: SavedState | None, subtask: int, parallelism: int
    ) -> SourceReaderOperator:
        operator = SourceReaderOperator(source)
        operator.setup(operator_context(subtask, parallelism), Collected())
        operator.initialize_state(snapshot)
        operator.open()
        return operator

    snapshots, expected = [], []
    for subtask, count in enumerate(held):
        operator = restored(None, subtask, len(held))
        splits = [
            PythonSplit(f"{subtask}-{number}", (subtask, 9), number) for number in range(count)
        ]
        operator._opened().add_splits(splits)
        snapshots.append(operator.freeze_state(barrier).write())
        expected += splits
        operator.close()
    readers = [
        restored(snapshot, subtask, after)
        for subtask, snapshot in enumerate(redistribute_all(snapshots, 128, after))
    ]
    shares = [list(reader._opened().snapshot_state(2)) for reader in readers]
    assert sorted(split.split_id for share in shares for split in share) == sorted(
        split.split_id for split in expected
    )
    assert sorted(split.position for share in shares for split in share) == sorted(
        split.position for split in expected
    )
    if after != len(held):
        assert max(map(len, shares)) - min(map(len, shares)) <= 1
    for reader in readers:
        reader.close()


# -- the coordinator by itself ---------------------------------------------------------------------


class Recorder:
    """A coordinator over one source, and what it said."""

    def __init__(self, source: Any, parallelism: int = 2) -> None:
        self.sent: list[tuple[int, Any]] = []
        self.failures: list[BaseException] = []
        self.background: list[tuple[Any, Future[Any]]] = []
        self.scheduled: list[tuple[float, Any]] = []
        self.coordinator = SourceCoordinator(
            OperatorId("op"), source, parallelism, self, name="numbers"
        )
        self.coordinator.start()

    def send_event(self, subtask: int, event: Any) -> None:
        self.sent.append((subtask, event))

    def fail_job(self, error: BaseException) -> None:
        self.failures.append(error)

    def schedule(self, delay_s: float, action: Any) -> None:
        self.scheduled.append((delay_s, action))

    def run_in_background(self, function: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.background.append((function, future))
        return future

    def splits_of(self, subtask: int) -> list[Any]:
        return [
            split
            for to, event in self.sent
            if to == subtask and isinstance(event, SplitsAdded)
            for split in loads(event.splits)
        ]


def test_a_request_before_its_registration_waits_for_it() -> None:
    recorder = Recorder(NumberSequenceSource(1, 10))
    recorder.coordinator.handle_event(0, SplitRequested("a"))
    assert recorder.sent == []
    recorder.coordinator.handle_event(0, ReaderRegistered("a"))
    assert recorder.splits_of(0) == [RangeSplit("1-6", 1, 6)]


def test_a_doubled_registration_counts_once() -> None:
    recorder = Recorder(NumberSequenceSource(1, 10))
    for _ in range(2):
        recorder.coordinator.handle_event(0, ReaderRegistered("a"))
    assert recorder.coordinator.statistics().registered == 1


def test_events_of_an_attempt_that_was_reset_are_ignored() -> None:
    recorder = Recorder(NumberSequenceSource(1, 10))
    recorder.coordinator.handle_event(0, ReaderRegistered("a"), attempt=0)
    recorder.coordinator.subtask_reset(0, attempt=0)
    recorder.coordinator.handle_event(0, SplitRequested("a"), attempt=0)
    assert recorder.sent == []
    assert recorder.coordinator.statistics().registered == 0


def test_a_reset_told_twice_gives_the_splits_back_once() -> None:
    recorder = Recorder(NumberSequenceSource(1, 10), parallelism=1)
    for event in (ReaderRegistered("a"), SplitRequested("a")):
        recorder.coordinator.handle_event(0, event, attempt=0)
    recorder.coordinator.subtask_reset(0, attempt=0)
    recorder.coordinator.subtask_reset(0, attempt=0)
    for event in (ReaderRegistered("a"), SplitRequested("a"), SplitRequested("a")):
        recorder.coordinator.handle_event(0, event, attempt=1)
    assert recorder.splits_of(0) == [RangeSplit("1-11", 1, 11)] * 2
    assert isinstance(recorder.sent[-1][1], NoMoreSplits)


class _Enumerator(SplitEnumerator[RangeSplit]):
    """Calls what the test wants."""

    def __init__(self, context: SplitEnumeratorContext[RangeSplit]) -> None:
        self.context = context
        self.heard: list[Any] = []

    def handle_split_request(self, subtask: int, host: str) -> None:
        raise ValueError("no such table")

    def add_splits_back(self, splits: list[RangeSplit], subtask: int) -> None:
        self.heard.append(("back", splits))

    def handle_source_event(self, subtask: int, event: Any) -> None:
        if event == "exit":
            raise SystemExit(3)
        self.heard.append((subtask, event))
        self.context.send_event_to_reader(subtask, ("echo", event))

    def snapshot_state(self, checkpoint_id: int) -> Any:
        return None

    def close(self) -> None:
        raise RuntimeError("close failed")


class _Scripted(NumberSequenceSource):
    def __init__(self) -> None:
        super().__init__(1, 10)
        self.made: list[_Enumerator] = []

    def create_enumerator(
        self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
    ) -> SplitEnumerator[RangeSplit]:
        self.made.append(_Enumerator(context))
        return self.made[-1]


def test_an_enumerators_error_fails_the_job_once_and_names_the_source() -> None:
    recorder = Recorder(_Scripted())
    recorder.coordinator.handle_event(0, ReaderRegistered("a"))
    recorder.coordinator.handle_event(0, SplitRequested("a"))
    recorder.coordinator.handle_event(0, SplitRequested("a"))
    [failure] = recorder.failures
    assert isinstance(failure, UserCodeError)
    assert failure.operator == "numbers (enumerator)"
    assert "no such table" in str(failure)


def test_an_exit_in_an_enumerator_fails_the_job_and_ends_nothing_else() -> None:
    recorder = Recorder(_Scripted())
    recorder.coordinator.handle_event(1, ReaderRegistered("a"))
    recorder.coordinator.handle_event(1, CustomSourceEvent(dumps_data("exit", "event")))
    [failure] = recorder.failures
    assert isinstance(failure, UserCodeError)
    assert (failure.operator, failure.cause) == ("numbers (enumerator)", "SystemExit: 3")


def test_custom_events_go_both_ways() -> None:
    source = _Scripted()
    recorder = Recorder(source)
    recorder.coordinator.handle_event(1, ReaderRegistered("a"))
    recorder.coordinator.handle_event(1, CustomSourceEvent(dumps_data({"lag": 3}, "event")))
    assert source.made[0].heard == [(1, {"lag": 3})]
    [(subtask, answer)] = recorder.sent
    assert subtask == 1
    assert loads(answer.event) == ("echo", {"lag": 3})


def test_splits_for_a_reader_that_is_not_there_are_refused_with_advice() -> None:
    source = _Scripted()
    Recorder(source)
    with pytest.raises(ProgramError, match="not registered; wait for add_reader"):
        source.made[0].context.assign_splits(0, [RangeSplit("x", 0, 1)])


def test_an_error_of_closing_an_enumerator_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder(_Scripted())
    recorder.coordinator.close()
    assert "closing the enumerator of numbers" in caplog.text


def test_slow_work_is_handed_back_and_repeated() -> None:
    source = _Scripted()
    recorder = Recorder(source)
    seen: list[Any] = []
    source.made[0].context.call_async(
        lambda: 42, lambda value, error: seen.append((value, error)), period_s=5.0
    )
    function, future = recorder.background[0]
    future.complete(function())
    assert seen == [(42, None)]
    [(delay, again)] = recorder.scheduled
    assert delay == 5.0
    again()
    recorder.background[1][1].fail(OSError("gone"))
    assert isinstance(seen[1][1], OSError)


def test_after_close_nothing_is_scheduled_or_answered() -> None:
    source = _Scripted()
    recorder = Recorder(source)
    source.made[0].context.call_async(
        lambda: 42, lambda value, error: pytest.fail("handled"), period_s=5.0
    )
    recorder.coordinator.close()
    recorder.background[0][1].complete(42)
    recorder.coordinator.handle_event(0, ReaderRegistered("a"))
    assert recorder.scheduled == []
    assert recorder.failures == []


def test_an_unknown_event_is_an_engine_error() -> None:
    recorder = Recorder(NumberSequenceSource(1, 10))
    recorder.coordinator.handle_event(0, ReaderRegistered("a"))
    recorder.coordinator.handle_event(0, "what?")
    assert isinstance(recorder.failures[0], EngineError)


def test_the_queue_hands_returned_splits_out_first() -> None:
    class Context:
        parallelism = 1
        given: list[Any] = []

        def assign_splits(self, subtask: int, splits: list[Any]) -> None:
            self.given.extend(splits)

    context: Any = Context()
    queue: SplitQueue[RangeSplit] = SplitQueue(
        context, lambda _: [RangeSplit(str(i), i, i + 1) for i in range(4)]
    )
    queue.start()
    queue.handle_split_request(0, "a")
    queue.handle_split_request(0, "a")
    queue.add_splits_back(context.given[:2], 0)
    for _ in range(4):
        queue.handle_split_request(0, "a")
    assert [split.start for split in context.given] == [0, 1, 0, 1, 2, 3]


def test_readers_that_ask_while_splits_are_looked_for_get_theirs_afterwards() -> None:
    class Slow(NumberSequenceSource):
        def create_enumerator(
            self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
        ) -> SplitEnumerator[RangeSplit]:
            return SplitQueue(context, lambda _: [RangeSplit("0", 0, 5)], checkpoint, slow=True)

    recorder = Recorder(Slow(1, 2))
    for subtask in range(2):
        recorder.coordinator.handle_event(subtask, ReaderRegistered("a"))
        recorder.coordinator.handle_event(subtask, SplitRequested("a"))
    assert recorder.sent == []
    function, future = recorder.background[0]
    future.complete(function())
    assert recorder.splits_of(0) == [RangeSplit("0", 0, 5)]
    assert isinstance(recorder.sent[1][1], NoMoreSplits)


def test_an_error_in_looking_for_splits_fails_the_job() -> None:
    class Slow(NumberSequenceSource):
        def create_enumerator(
            self, context: SplitEnumeratorContext[RangeSplit], checkpoint: Any = None
        ) -> SplitEnumerator[RangeSplit]:
            return SplitQueue(context, lambda _: [], checkpoint, slow=True)

    recorder = Recorder(Slow(1, 2))
    recorder.background[0][1].fail(OSError("bucket is gone"))
    [failure] = recorder.failures
    assert "bucket is gone" in str(failure)


# -- the operator ----------------------------------------------------------------------------------


class Endless(ManySplits):
    bounded = False


def test_a_restored_reader_of_splits_without_end_reads_nothing_before_it_has_all_of_its_splits() -> (
    None
):
    """Otherwise the event time of some splits would pass one that had not been assigned at the
    checkpoint."""
    operator, output = SourceReaderOperator(Endless([3, 3])), Collected()
    operator.setup(operator_context(), output)
    operator.initialize_state(None)
    operator.open()
    operator._opened().add_splits([PythonSplit("restored", (0, 3), 0)])
    assert operator.emit_next() is InputStatus.NOTHING_AVAILABLE
    operator._opened().add_splits([PythonSplit("not assigned then", (1, 3), 0)])
    assert operator.emit_next() is InputStatus.NOTHING_AVAILABLE
    assert len(operator._opened().snapshot_state(1)) == 2
    operator._opened().notify_no_more_splits()
    while operator.emit_next() is InputStatus.MORE_AVAILABLE:
        pass
    assert sorted(output.values) == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    operator.close()


class Broken(PythonSource):
    def read(self, split: Any, position: int) -> Iterator[int]:
        yield from range(5)
        raise ValueError("bad reading")


def test_an_error_in_a_reader_names_the_source_the_line_and_the_position() -> None:
    world = World(Broken(), batch_records=5)
    with pytest.raises(UserCodeError, match="bad reading") as caught:
        world.run()
    assert caught.value.operator == "numbers"
    assert caught.value.frames[-1].text == 'raise ValueError("bad reading")'
    assert caught.value.origin == "split 0, position 0"
    world.close()


def test_a_reader_that_cannot_be_made_is_an_error_of_the_source() -> None:
    class NoReader(NumberSequenceSource):
        def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
            raise OSError("no device")

    with pytest.raises(UserCodeError, match="no device"):
        World(NoReader(1, 2))


def test_the_operator_says_where_its_batch_came_from() -> None:
    world = World(CollectionSource("abcdef"), batch_records=2)
    subtask = world.subtasks[0]
    while len(subtask.output.batches) < 2:
        world.step()
    assert subtask.operator.position() == "index 2"
    world.close()


def test_a_timer_of_the_reader_is_cancelled_when_the_operator_closes() -> None:
    from flinkpy.connectors.memory.datagen import DataGeneratorSource

    world = World(DataGeneratorSource(lambda index: index, rate=1.0))
    while not world.subtasks[0].output.batches or world.subtasks[0].timers.next_due() is None:
        assert world.step()
    world.close()
    assert world.subtasks[0].timers.next_due() is None


def test_a_closed_operator_keeps_neither_its_reader_nor_what_is_left_of_a_batch() -> None:
    """An ended task may wait long for the garbage collector; the reader's data must not."""
    world = World(NumberSequenceSource(1, 100), batch_records=100)
    operator = world.subtasks[0].operator
    operator.batch_size = 10
    while not world.subtasks[0].output.batches:
        world.step()
    reader = weakref.ref(operator._opened())
    world.close()
    assert reader() is None
    assert operator.emit_next() is InputStatus.END_OF_INPUT


def test_an_operator_that_was_not_opened_has_nothing_to_close_and_no_position() -> None:
    operator = SourceReaderOperator(NumberSequenceSource(1, 2))
    operator.setup(operator_context(), World(NumberSequenceSource(1, 2)).subtasks[0].output)
    assert operator.position() is None
    operator.close()


def test_without_splits_a_reader_asks_once_and_waits() -> None:
    world = World(NumberSequenceSource(1, 2))
    subtask = world.subtasks[0]
    while world.mail:
        world.mail.pop(0)()
    for _ in range(3):
        assert subtask.operator.emit_next() is InputStatus.NOTHING_AVAILABLE
    assert len(world.mail) == 1
    world.close()


class Polled(NumberSequenceSource):
    """Its reader's ``poll`` gives that."""

    def __init__(self, polled: Any) -> None:
        super().__init__(1, 1)
        self.polled = polled

    def create_reader(self, context: ReaderContext) -> SourceReader[RangeSplit]:
        reader = super().create_reader(context)
        reader.poll = lambda limit: self.polled  # type: ignore[method-assign]
        return reader


@pytest.mark.parametrize("polled", [None, [1, 2], "text"])
def test_a_reader_that_gives_no_batch_is_told_what_it_should(polled: Any) -> None:
    with pytest.raises(UserCodeError, match=r"poll\(\) gives a RowBatch, .* this is"):
        read_all(Polled(polled))
