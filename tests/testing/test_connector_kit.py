"""The connector kit notices what is wrong with a connector: each of these is broken in one way, and
fails in the test that is named for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest

from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.connectors.sinks import (
    Batch,
    Committer,
    OperatorContext,
    Sink,
    SinkWriter,
    ThreadedSinkWriter,
    rows_of,
)
from flinkpy.connectors.source_api.python_source import PythonSplit, _IteratorReader
from flinkpy.connectors.sources import (
    ReaderContext,
    RowBatch,
    SequentialReader,
    SideBySideReader,
    SourceReader,
    SplitDiscovery,
    SplitEnumerator,
    SplitEnumeratorContext,
    SplitReader,
    ThreadedSplitReader,
    Watermark,
)
from flinkpy.testing.connectors import ConnectorTests, SinkTests, SourceTests, source_world
from tests.connectors.test_sinks_in_the_kit import (
    SHELVES,
    Shelf,
    ShelfCommitter,
    ShelfSink,
    ShelfWriter,
)
from tests.connectors.test_sinks_in_the_kit import TestShelf as GoodSink
from tests.connectors.test_sources_in_the_kit import HERE, ShardSource
from tests.connectors.test_sources_in_the_kit import ShardTests as GoodSource

GoodSink.__test__ = False  # type: ignore[attr-defined]  # it is run where it is from


PATIENT = {"patience_s": SourceTests.patience_s, "prompt_s": SourceTests.prompt_s}
# a broken connector may hang; a good one has all the time that the kit gives
IMPATIENT = {"patience_s": 5.0, "prompt_s": 2.0}


class AnySource(GoodSource):
    """The suite over another source."""

    source: type[ShardSource] = ShardSource

    def bounded_source(self) -> ShardSource:
        return self.source(self.name, bounded=True)

    def unbounded_source(self) -> ShardSource:
        return self.source(self.name, bounded=False, discovers=self.discovers)


# -- sources ---------------------------------------------------------------------------------------


class ForgetsItsPosition(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        return super().read(split, None)


class DoublesSplitsOnRestore(ShardSource):
    def create_enumerator(
        self, context: SplitEnumeratorContext[PythonSplit], checkpoint: Any = None
    ) -> SplitEnumerator[PythonSplit]:
        return super().create_enumerator(context, None)


class LosesTheLastRecord(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        held = None
        for record in super().read(split, position):
            if held is not None:
                yield held
            held = record


class ReverseOrder(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        numbers = HERE[self.name].shards[split]
        for at in range(position or 0, len(numbers)):
            number = numbers[-1 - at]
            yield number, 1000 + number, at + 1


class AheadOfWhatWasEmitted(ThreadedSplitReader[PythonSplit]):
    """Its position is that of its thread."""

    def snapshot(self) -> PythonSplit:
        for read in self._queue:
            return read.split
        return super().snapshot()


def reader_of(
    source: ShardSource, context: ReaderContext, threaded: type[ThreadedSplitReader[PythonSplit]]
) -> SourceReader[PythonSplit]:
    """The source's reader, with another kind of thread."""

    def open_split(split: PythonSplit) -> SplitReader[PythonSplit]:
        return threaded(
            split, lambda split: _IteratorReader(source, split), 1, context.wake_up, "reading"
        )

    return (
        SequentialReader(context, open_split)
        if source.bounded
        else SideBySideReader(context, open_split, awaits_all=True)
    )


class SavesWhatWasReadAhead(ShardSource):
    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        return reader_of(self, context, AheadOfWhatWasEmitted)


class BlocksTheLoop(ShardSource):
    blocking = False


class IgnoresInterrupt(ShardSource):
    def interrupt(self, split: str) -> None:
        """Its thread goes on waiting."""


class OneWatermarkForAll(SideBySideReader[PythonSplit]):
    def split_of_batch(self) -> str | None:
        return "all of them"


class WatermarkTooEarly(ShardSource):
    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        made = super().create_reader(context)
        if isinstance(made, SideBySideReader):
            context.split_begun = lambda split_id: None
            made.__class__ = OneWatermarkForAll
        return made


class Announcing(SequentialReader[PythonSplit]):
    """Says before the first record that all of them have come."""

    first: Any = None

    def poll(self, limit: int) -> Any:
        if self.first is None and isinstance(first := super().poll(limit), RowBatch):
            self.first = first
            return Watermark(2000)
        found, self.first = (
            (self.first, ())
            if self.first
            else (super().poll(limit) if self.first == () else first, self.first)
        )
        return found


class OwnWatermarkTooEarly(ShardSource):
    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        made = super().create_reader(context)
        if isinstance(made, SequentialReader):
            made.__class__ = Announcing
        return made


class WrongTimes(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        for number, time, at in super().read(split, position):
            yield number, time + (at == 7), at


class LosesSplitsOfFailedReaders(ShardSource):
    def create_enumerator(
        self, context: SplitEnumeratorContext[PythonSplit], checkpoint: Any = None
    ) -> SplitEnumerator[PythonSplit]:
        made = super().create_enumerator(context, checkpoint)
        made.add_splits_back = lambda splits, subtask: None  # type: ignore[method-assign]
        return made


class SavesOneSplit(SideBySideReader[PythonSplit]):
    def snapshot_state(self, checkpoint_id: int) -> list[PythonSplit]:
        return super().snapshot_state(checkpoint_id)[:1]


class LosesASecondSplit(ShardSource):
    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        made = super().create_reader(context)
        if isinstance(made, SideBySideReader):
            made.__class__ = SavesOneSplit
        return made


class Ring(ThreadedSplitReader[PythonSplit]):
    """Drops what is oldest when nobody takes it."""

    def _put(self, read: Any) -> bool:
        with self._changed:
            if len(self._queue) >= 4:
                self._queue.popleft()
            self._queue.append(read)
        self._wake_up()
        return not self._stopped


class DropsWhatNobodyTakes(ShardSource):
    def create_reader(self, context: ReaderContext) -> SourceReader[PythonSplit]:
        return reader_of(self, context, Ring)


class ReadsEverythingAhead(ShardSource):
    blocking = False

    def read(self, split: str, position: int | None) -> Iterator[Any]:
        numbers = HERE[self.name].shards[split]
        return iter(
            [
                (number, 1000 + number, at + 1)
                for at, number in enumerate(numbers)
                if at >= (position or 0)
            ]
        )


class LooksOnce(ShardSource):
    def create_enumerator(
        self, context: SplitEnumeratorContext[PythonSplit], checkpoint: Any = None
    ) -> SplitEnumerator[PythonSplit]:
        made = super().create_enumerator(context, checkpoint)
        if isinstance(made, SplitDiscovery):
            made._interval_s = None  # type: ignore[assignment]
        return made


class AcknowledgesAtOnce(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        for number, time, at in super().read(split, position):
            HERE[self.name].acknowledged[split] = at
            yield number, time, at


class AcknowledgesNothing(ShardSource):
    def acknowledge(self, split: str, position: int | None) -> None:
        """Forgets to."""


class StaysHere(ShardSource):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.lock = threading.Lock()


class TakesSilenceForTheEnd(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        shards, at = HERE[self.name], position or 0
        for number in shards.shards[split][at:]:
            if shards.paused:
                return
            at += 1
            yield number, 1000 + number, at


class TakesAFailureForTheEnd(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        try:
            yield from super().read(split, position)
        except OSError:
            return


class TellsAtLength(ShardSource):
    def read(self, split: str, position: int | None) -> Iterator[Any]:
        try:
            yield from super().read(split, position)
        except OSError as error:
            raise ValueError(f"the shards are gone\nand this is why:\n{error}") from None


class EmitsNothingMore(ShardSource):
    """Stops at what was there when it began."""

    def read(self, split: str, position: int | None) -> Iterator[Any]:
        shards, at = HERE[self.name], position or 0
        for number in list(shards.shards[split])[at:]:
            at += 1
            yield number, 1000 + number, at
        reader = shards.begin(split)
        shards.after(split, 1_000_000, reader, waits=True)


SOURCES: list[tuple[type[ShardSource], str, dict[str, Any]]] = [
    (ForgetsItsPosition, "test_it_goes_on_from_a_checkpoint_anywhere", {}),
    (DoublesSplitsOnRestore, "test_it_goes_on_from_a_checkpoint_anywhere", {}),
    (LosesASecondSplit, "test_it_goes_on_with_another_number_of_readers", {}),
    (LosesTheLastRecord, "test_every_record_comes_once", {}),
    (ReverseOrder, "test_the_records_of_a_split_come_in_their_order", {}),
    (SavesWhatWasReadAhead, "test_a_snapshot_is_of_what_was_emitted_and_disturbs_nothing", {}),
    (
        LosesSplitsOfFailedReaders,
        "test_what_a_reader_had_is_read_by_the_next_if_it_fails_before_a_checkpoint",
        {},
    ),
    (BlocksTheLoop, "test_no_call_waits", {}),
    (IgnoresInterrupt, "test_closing_ends_what_waits", {}),
    (TakesSilenceForTheEnd, "test_a_pause_of_the_outside_system_loses_nothing", {}),
    (EmitsNothingMore, "test_records_written_later_come_too", {}),
    (LooksOnce, "test_new_splits_are_found", {"discovers": True}),
    (WatermarkTooEarly, "test_splits_have_watermarks_of_their_own", {}),
    (OwnWatermarkTooEarly, "test_its_event_times_and_watermarks_are_right", {}),
    (WrongTimes, "test_its_event_times_and_watermarks_are_right", {}),
    (
        ReadsEverythingAhead,
        "test_it_reads_ahead_a_bounded_amount",
        {"many": 40_000, "read_ahead_bytes": 500_000, "patience_s": 30.0},
    ),
    (AcknowledgesAtOnce, "test_it_tells_what_was_read_when_a_checkpoint_is_complete", {}),
    (AcknowledgesNothing, "test_it_tells_what_was_read_when_a_checkpoint_is_complete", {}),
    (StaysHere, "test_it_travels", {}),
    (LosesTheLastRecord, "test_a_job_reads_all_of_it", {}),
    (ForgetsItsPosition, "test_a_job_that_fails_at_a_new_record_reads_on_from_its_checkpoint", {}),
    (
        DoublesSplitsOnRestore,
        "test_a_job_that_fails_reads_on_from_its_checkpoint",
        {"splits": 8, "records": 80},
    ),
    (TakesAFailureForTheEnd, "test_a_job_waits_for_an_outside_system_that_fails_at_first", {}),
    (BlocksTheLoop, "test_a_job_is_cancelled_promptly", {}),
    (BlocksTheLoop, "test_a_job_is_cancelled_while_the_outside_system_is_silent", {}),
    (DropsWhatNobodyTakes, "test_a_slow_consumer_loses_nothing", {}),
    (TellsAtLength, "test_a_failure_of_the_outside_system_is_one_sentence", {}),
    (TakesAFailureForTheEnd, "test_a_job_goes_on_when_the_outside_system_works_again", {}),
    (ShardSource, "test_throughput", {"floor": 1e9}),
]


def outcome(tests: type[ConnectorTests], name: str, **attributes: Any) -> str:
    """How the test ends in a suite with these attributes."""
    suite: type[ConnectorTests] = type("Suite", (tests,), attributes)
    return suite._outcome(name)


@pytest.mark.wide(but=("LosesTheLastRecord", "DoublesSplits", "ForgetsItsPosition"))
@pytest.mark.parametrize(
    ("source", "test", "attributes"),
    SOURCES,
    ids=[f"{source.__name__}-{test}" for source, test, _ in SOURCES],
)
def test_a_broken_source_fails_in_the_test_that_is_named_for_it(
    source: type[ShardSource], test: str, attributes: dict[str, Any]
) -> None:
    good = outcome(AnySource, test, **{**attributes, **PATIENT, "floor": None})
    broken = outcome(AnySource, test, source=source, **{**IMPATIENT, **attributes})
    assert (good, broken.partition(":")[0]) == ("passed", "failed"), broken


class Ticking:
    """A clock on which a second passes whenever somebody looks."""

    def __init__(self) -> None:
        self.seconds = count()

    def monotonic(self) -> float:
        return float(next(self.seconds))


def test_patience_is_for_silence_and_not_for_a_source_that_is_slow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_world, "SYSTEM_CLOCK", Ticking())
    calls = count()
    with source_world.World(NumberSequenceSource(0, 3)) as world:

        def slow_but_done_in_the_end() -> bool:
            call = next(calls)
            if call % 3 == 0:
                world.subtasks[0].output.emit(RowBatch([call]))
            return call > 60

        world.run_until(slow_but_done_in_the_end, "reading slowly", 5.0)
        with pytest.raises(AssertionError, match="silence: nothing has come for 5 s"):
            world.run_until(lambda: False, "silence", 5.0)


# -- sinks -----------------------------------------------------------------------------------------


class AnySink(GoodSink):
    """The suite over another sink."""

    made: type[ShelfSink] = ShelfSink

    def sink(self) -> Sink:
        return self.made(self.name)


class OtherWriter(ShelfSink):
    """Makes another writer."""

    writer_class: type[ShelfWriter] = ShelfWriter

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return ThreadedSinkWriter(self.writer_class(SHELVES[self.name]), context)


class CommittingAtPrepare(ShelfWriter):
    def prepare_commit(self) -> Sequence[Any]:
        prepared = super().prepare_commit()
        ShelfCommitter(self.shelf).commit(prepared)
        return prepared


class CommitsAtPrepare(OtherWriter):
    writer_class = CommittingAtPrepare


class ShowingAtOnce(ShelfWriter):
    def write_batch(self, batch: Batch) -> None:
        self.shelf.committed.setdefault(self.name, []).extend(rows_of(batch))


class ShowsBeforeCommit(OtherWriter):
    writer_class = ShowingAtOnce


class NotFlushing(ShelfWriter):
    def finish(self) -> None:
        """Forgets what it has gathered."""


class LosesTheEnd(OtherWriter):
    writer_class = NotFlushing


class FlushingLater(ShelfWriter):
    def flush(self) -> None:
        if len(self.gathered) > 10:
            super().flush()


class FlushesTooLate(OtherWriter):
    writer_class = FlushingLater


class Doubling(ShelfCommitter):
    def commit(self, committables: Sequence[Any]) -> None:
        for transaction in committables:
            self.shelf.committed[f"{transaction} {len(self.shelf.committed)}"] = (
                self.shelf.prepared.get(transaction, [])
            )


class CommitsTwice(ShelfSink):
    def create_committer(self, context: OperatorContext) -> Committer:
        return Doubling(SHELVES[self.name])


class KnowingItsOwn(ShelfCommitter):
    """Commits what this object was the first to hear of, before it is told: it knows nothing of
    other processes."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self.known = set(shelf.prepared)

    def commit(self, committables: Sequence[Any]) -> None:
        super().commit([each for each in committables if each not in self.known])


class ForgetsWhatIsRestored(ShelfSink):
    def create_committer(self, context: OperatorContext) -> Committer:
        return KnowingItsOwn(SHELVES[self.name])


class Numbering(ShelfWriter):
    """Its transactions are numbered from 1, in each subtask and attempt."""

    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self.numbers = count(1)

    def flush(self) -> None:
        if self.gathered and self.transaction is None:
            self.transaction = f"transaction {next(self.numbers)}"
            self.shelf.prepared[self.transaction] = []
        super().flush()


class NamesCollide(OtherWriter):
    writer_class = Numbering


class Remembering(ShelfWriter):
    """Keeps an odd record until there is another one; it is state."""

    def flush(self) -> None:
        odd = self.gathered[len(self.gathered) // 2 * 2 :] if not self.ends else []
        self.gathered = self.gathered[: len(self.gathered) - len(odd)]
        super().flush()
        self.gathered = odd

    ends = False

    def finish(self) -> None:
        self.ends = True
        self.flush()

    def snapshot_state(self, checkpoint_id: int) -> Sequence[Any]:
        return list(self.gathered)


class ForgetsItsState(OtherWriter):
    writer_class = Remembering

    def restore_writer(self, context: OperatorContext, states: Sequence[Any]) -> SinkWriter:
        return self.create_writer(context)


class BlocksTheLoopAtFlush(ShelfSink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return ShelfWriter(SHELVES[self.name])


class WithoutABound(ThreadedSinkWriter):
    available = True

    def write_batch(self, batch: Batch) -> None:
        self._is_behind = True
        with self._changed:
            self._queue.append(lambda: self._writer.write_batch(batch))
            self._changed.notify_all()


class HoldsEverything(ShelfSink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return WithoutABound(ShelfWriter(SHELVES[self.name]), context)


class DroppingWhenFull(ThreadedSinkWriter):
    available = True

    def write_batch(self, batch: Batch) -> None:
        if len(self._queue) < 4:
            super().write_batch(batch)


class DropsWhenFull(ShelfSink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return DroppingWhenFull(ShelfWriter(SHELVES[self.name]), context)


class NeverInterrupted(ShelfWriter):
    def interrupt(self) -> None:
        """Its call goes on waiting."""


class IgnoresInterruptOfWriter(OtherWriter):
    writer_class = NeverInterrupted


class LeavingAThread(ShelfWriter):
    def __init__(self, shelf: Shelf) -> None:
        super().__init__(shelf)
        self.over = threading.Event()
        threading.Thread(target=self.over.wait, args=(60.0,), daemon=True).start()


class LeavesAThread(OtherWriter):
    writer_class = LeavingAThread


class PreparingWhatStaysHere(ShelfWriter):
    def prepare_commit(self) -> Sequence[Any]:
        return [(each, threading.Lock()) for each in super().prepare_commit()]


class CommittablesStayHere(OtherWriter):
    writer_class = PreparingWhatStaysHere


class Swallowing(ShelfCommitter):
    def commit(self, committables: Sequence[Any]) -> None:
        try:
            super().commit(committables)
        except OSError:
            """Nobody is told."""


class SwallowsErrors(ShelfSink):
    def create_committer(self, context: OperatorContext) -> Committer:
        return Swallowing(SHELVES[self.name])


class DroppingWhatFails(ShelfWriter):
    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self.gathered = []


class DropsWhatFails(OtherWriter):
    """In the writer and behind it: the failure may begin between the two."""

    writer_class = DroppingWhatFails

    def create_committer(self, context: OperatorContext) -> Committer:
        return Swallowing(SHELVES[self.name])


class PreparingNothing(ShelfWriter):
    def prepare_commit(self) -> Sequence[Any]:
        return super().prepare_commit() or [None]


class InsistingOnContent(ShelfCommitter):
    def commit(self, committables: Sequence[Any]) -> None:
        super().commit([each.strip() for each in committables])


class FailsWithoutARecord(OtherWriter):
    writer_class = PreparingNothing

    def create_committer(self, context: OperatorContext) -> Committer:
        return InsistingOnContent(SHELVES[self.name])


class OneTransaction(ShelfWriter):
    """Begins its transaction anew behind each checkpoint, whether that was complete or not."""

    def prepare_commit(self) -> Sequence[Any]:
        prepared = super().prepare_commit()
        for transaction in prepared:
            self.shelf.prepared[self.name] = self.shelf.prepared.pop(transaction)
        return [self.name] if prepared else []


class OverwritesWhatWaits(OtherWriter):
    writer_class = OneTransaction


class Silent(ShelfWriter):
    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            raise RuntimeError from None


class TellsNothing(OtherWriter):
    writer_class = Silent


class SinkStaysHere(ShelfSink):
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.lock = threading.Lock()


SINKS: list[tuple[type[ShelfSink], str, dict[str, Any]]] = [
    (CommitsAtPrepare, "test_nothing_is_seen_before_its_checkpoint_is_complete", {}),
    (ShowsBeforeCommit, "test_nothing_is_seen_before_its_checkpoint_is_complete", {}),
    (ShowsBeforeCommit, "test_a_failure_before_the_checkpoint_is_complete", {}),
    (LosesTheEnd, "test_all_is_seen_at_the_end", {}),
    (FlushesTooLate, "test_what_a_checkpoint_has_is_there_when_it_is_complete", {}),
    (CommitsTwice, "test_a_commit_may_come_again", {}),
    (ForgetsWhatIsRestored, "test_a_failure_between_prepare_and_commit", {}),
    (NamesCollide, "test_all_is_seen_at_the_end", {}),
    (NamesCollide, "test_whatever_goes_wrong", {}),
    (ForgetsItsState, "test_it_goes_on_with_another_number_of_writers", {}),
    (CommittablesStayHere, "test_a_failure_between_prepare_and_commit", {}),
    (BlocksTheLoopAtFlush, "test_no_call_waits_while_the_outside_system_is_silent", {}),
    (HoldsEverything, "test_no_call_waits_while_the_outside_system_is_silent", {}),
    (DropsWhenFull, "test_no_call_waits_while_the_outside_system_is_silent", {}),
    (IgnoresInterruptOfWriter, "test_closing_does_not_wait_while_the_outside_system_is_silent", {}),
    (LeavesAThread, "test_it_is_closed_whatever_happened", {}),
    (SinkStaysHere, "test_it_travels", {}),
    (FailsWithoutARecord, "test_writers_without_a_record_do_no_harm", {}),
    (OverwritesWhatWaits, "test_what_an_aborted_checkpoint_had_goes_with_the_next", {}),
    (TellsNothing, "test_a_failure_of_the_outside_system_is_one_sentence", {}),
    (LosesTheEnd, "test_a_job_writes_all_of_it", {}),
    (ShowsBeforeCommit, "test_a_job_that_fails_writes_on_from_its_checkpoint", {}),
    (SwallowsErrors, "test_a_commit_that_fails_comes_again", {}),
    (DropsWhatFails, "test_a_job_goes_on_when_the_outside_system_works_again", {}),
    (BlocksTheLoopAtFlush, "test_a_job_is_cancelled_while_the_outside_system_is_silent", {}),
    (ShelfSink, "test_throughput", {"floor": 1e9}),
]


@pytest.mark.wide(but=("CommitsAtPrepare", "CommitsTwice", "NamesCollide"))
@pytest.mark.parametrize(
    ("sink", "test", "attributes"),
    SINKS,
    ids=[f"{sink.__name__}-{test}" for sink, test, _ in SINKS],
)
def test_a_broken_sink_fails_in_the_test_that_is_named_for_it(
    sink: type[ShelfSink], test: str, attributes: dict[str, Any]
) -> None:
    good = outcome(AnySink, test)
    broken = outcome(AnySink, test, made=sink, **{**IMPATIENT, **attributes})
    assert (good, broken.partition(":")[0]) == ("passed", "failed"), broken


def test_every_test_of_the_kit_has_a_connector_that_fails_it() -> None:
    for kit, table in ((SourceTests, SOURCES), (SinkTests, SINKS)):
        tests = {name for name in dir(kit) if name.startswith("test_")}
        broken = {test for _, test, _ in table}
        assert tests - broken <= WITHOUT_A_MUTANT, tests - broken - WITHOUT_A_MUTANT
        assert broken <= tests


WITHOUT_A_MUTANT: set[str] = set()
