"""Sinks that flush without holding up their task: barriers and the end of the input wait for them,
and nobody else does."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest

from flinkpy.connectors import threaded_writer
from flinkpy.connectors.threaded_writer import MOST_BATCHES, QUEUED_BATCHES, ThreadedSinkWriter
from flinkpy.core.elements import Batch, CheckpointBarrier, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter
from flinkpy.testing.connectors.sink_world import WITHOUT_CHECKPOINTS, SinkWorld
from flinkpy.testing.connectors.source_world import operator_context
from tests.operators.harness import ChainHarness, linear
from tests.waiting import eventually


class Slow(SinkWriter):
    """Says itself when it is flushed."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.is_flushed, self.error = True, ""

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self.values += batch.values

    @property
    def available(self) -> bool:
        return self.is_flushed

    def flush(self) -> None:
        self.is_flushed = False

    @property
    def flushed(self) -> bool:
        if self.error:
            raise OSError(self.error)
        return self.is_flushed

    def prepare_commit(self) -> Sequence[Any]:
        values, self.values = self.values, []
        return values


COMMITTED: list[Any] = []


class SlowSink(Sink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return Slow()

    def create_committer(self, context: OperatorContext) -> Committer:
        return Noting()


class Noting(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        COMMITTED.extend(committables)


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    COMMITTED.clear()


def chain() -> tuple[ChainHarness, Slow]:
    operator = SinkOperator(SlowSink())
    harness = ChainHarness(linear(MapOperator(lambda value: value), operator))
    writer = operator.writer
    assert isinstance(writer, Slow)
    return harness, writer


def test_a_barrier_waits_for_a_sink_that_is_not_flushed() -> None:
    harness, writer = chain()
    harness.chain.batch_inputs()[0](RowBatch([1, 2]))
    passed: list[int] = []
    asked: list[bool] = []
    harness.chain.parked_work.set_listener(lambda: asked.append(True))
    harness.chain.process_barrier(
        CheckpointBarrier(7, 0), lambda barrier: passed.append(barrier.checkpoint_id)
    )
    # the task is asked to look again: it may be waiting for input
    assert (passed, asked) == ([], [True])
    assert harness.chain.parked_work.pending()
    assert not harness.chain.available
    harness.chain.parked_work.go_on()
    assert passed == []
    writer.is_flushed = True
    harness.chain.parked_work.go_on()
    harness.chain.parked_work.go_on()
    assert passed == [7]
    assert not harness.chain.parked_work.pending()
    harness.chain.close()


def test_what_goes_wrong_while_it_flushes_fails_the_task_and_not_only_the_checkpoint() -> None:
    harness, writer = chain()
    harness.chain.process_barrier(CheckpointBarrier(7, 0), lambda barrier: None)
    writer.error = "the disk is gone"
    with pytest.raises(UserCodeError, match="the disk is gone"):
        harness.chain.parked_work.go_on()
    harness.chain.close()


def test_the_end_waits_for_a_sink_that_is_not_flushed() -> None:
    harness, writer = chain()
    harness.chain.batch_inputs()[0](RowBatch([1, 2]))
    assert not harness.chain.finish()
    assert COMMITTED == []
    writer.is_flushed = True
    assert harness.chain.finish()
    assert COMMITTED == [1, 2]
    harness.chain.close()


# -- a committer that puts off ---------------------------------------------------------------------


class PuttingOff(Committer):
    """Commits even numbers at once, and odd ones the second time."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def commit(self, committables: Sequence[Any]) -> Sequence[Any]:
        later = [number for number in committables if number % 2 and number not in self.seen]
        self.seen.update(later)
        COMMITTED.extend(number for number in committables if number not in later)
        return later


class PuttingOffSink(SlowSink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        made = Slow()
        made.flush = lambda: None  # type: ignore[method-assign]
        return made

    def create_committer(self, context: OperatorContext) -> Committer:
        return PuttingOff()


def test_what_a_committer_gives_back_is_committed_with_the_next_checkpoint() -> None:
    world = SinkWorld(PuttingOffSink())
    world.feed(4)
    world.complete(world.barrier())
    assert COMMITTED == [0, 2]
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [0, 2, 1, 3, 4]
    world.close()


def test_what_a_committer_has_put_off_is_in_the_checkpoint_and_holds_the_end_back() -> None:
    world = SinkWorld(PuttingOffSink())
    world.feed(2)
    world.complete(world.barrier())
    world.complete(world.barrier())
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [0, 1, 2]
    world.end_input()
    assert world.operators[0].waits_for_final_checkpoint
    world.crash()
    world.complete(world.barrier())
    assert COMMITTED == [0, 1, 2, 2, 3]  # the new attempt commits all of the checkpoint
    world.close()


def test_without_checkpoints_nothing_can_be_put_off() -> None:
    world = SinkWorld(PuttingOffSink(), configuration=WITHOUT_CHECKPOINTS)
    world.feed(2)
    with pytest.raises(
        ProgramError, match=r"PuttingOff put off 1 committables, and no checkpoint follows"
    ):
        world.end_input()
    world.close()


# -- a writer on a thread --------------------------------------------------------------------------


class Gate(SinkWriter):
    """Waits for the test in each call."""

    def __init__(self) -> None:
        self.open, self.calls = threading.Semaphore(0), list[Any]()
        self.error: BaseException | None = None
        self.waits = threading.Event()

    def _call(self, call: Any) -> None:
        self.waits.set()
        self.open.acquire()
        if self.error is not None:
            raise self.error
        self.calls.append(call)

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self._call(batch.values)

    def flush(self) -> None:
        self._call("flush")

    def interrupt(self) -> None:
        self.error = OSError("interrupted")
        self.open.release()

    def close(self) -> None:
        self.calls.append("close")


def threaded() -> tuple[Gate, ThreadedSinkWriter, list[bool]]:
    gate, told = Gate(), list[bool]()
    context = operator_context()
    context.run_in_task = lambda action: action()
    writer = ThreadedSinkWriter(gate, context)
    writer.set_listener(lambda: told.append(True))
    return gate, writer, told


def test_the_task_hands_over_a_few_batches_and_is_told_when_there_is_room() -> None:
    gate, writer, told = threaded()
    written = 0
    while writer.available:
        writer.write_batch(RowBatch([written]))
        written += 1
    assert (written, len(told)) == (QUEUED_BATCHES, 0)
    gate.open.release()
    eventually(lambda: bool(told) and writer.available)
    gate.open.release(written)
    eventually(lambda: len(gate.calls) == written)
    writer.close()
    eventually(lambda: gate.calls == [[0], [1], [2], [3], "close"])


def test_who_was_told_that_there_is_no_room_is_woken_although_it_asked_for_something_else_since() -> (
    None
):
    gate, writer, told = threaded()
    for number in range(QUEUED_BATCHES):
        writer.write_batch(RowBatch([number]))
    assert (writer.available, writer.flushed) == (False, True)
    gate.open.release()
    eventually(lambda: bool(told))
    gate.open.release(QUEUED_BATCHES)
    writer.close()


def test_a_flush_is_done_when_all_before_it_is() -> None:
    gate, writer, told = threaded()
    assert writer.flushed
    writer.flush()
    assert writer.flushed, "nothing was written"
    writer.write_batch(RowBatch([1]))
    writer.flush()
    writer.flush()
    assert (writer.flushed, writer.available) == (False, False)
    gate.open.release()
    gate.open.release()
    eventually(lambda: bool(told))
    assert (writer.flushed, writer.available) == (True, True)
    writer.close()
    assert gate.calls == [[1], "flush", "close"]


@pytest.mark.parametrize("failing", [OSError("the disk is full"), SystemExit(3)])
def test_an_error_on_its_thread_reaches_the_task(failing: BaseException) -> None:
    gate, writer, told = threaded()
    gate.error = failing
    writer.write_batch(RowBatch([1]))
    writer.flush()
    assert not writer.flushed
    gate.open.release()
    eventually(lambda: bool(told))
    assert writer.available, "the task must not wait for room"
    with pytest.raises(type(failing)):
        assert writer.flushed
    with pytest.raises(type(failing)):
        writer.write_batch(RowBatch([2]))
    writer.close()
    assert gate.calls == ["close"]


def _fail(why: str) -> None:
    raise OSError(why)


def test_the_first_error_is_told_and_not_that_the_writer_cannot_be_closed_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, writer, told = threaded()
    gate.error = OSError("the disk is full")
    monkeypatch.setattr(gate, "close", lambda: _fail("it cannot be closed"))
    writer.write_batch(RowBatch([1]))
    gate.open.release()
    eventually(lambda: bool(told))
    with pytest.raises(OSError, match="the disk is full"):
        assert writer.flushed
    writer.close()


def test_a_close_that_fails_is_told_and_one_that_hangs_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, writer, _ = threaded()
    monkeypatch.setattr(gate, "close", lambda: _fail("it cannot be closed"))
    with pytest.raises(OSError, match="it cannot be closed"):
        writer.close()
    monkeypatch.setattr(threaded_writer, "CLOSING_S", 0.05)
    gate, writer, _ = threaded()
    monkeypatch.setattr(gate, "close", lambda: gate._call("close"))
    writer.close()
    eventually(lambda: isinstance(gate.error, OSError) and not writer._thread.is_alive())


def test_closing_interrupts_a_call_that_waits_and_does_not_wait_itself() -> None:
    gate, writer, _ = threaded()
    writer.write_batch(RowBatch([1]))
    assert gate.waits.wait(10)
    writer.close()
    eventually(lambda: gate.calls == ["close"], 10)


def test_who_writes_without_room_waits_in_the_end() -> None:
    gate, writer, _ = threaded()
    done = threading.Event()

    def write_many() -> None:
        for number in range(MOST_BATCHES + 1):
            writer.write_batch(RowBatch([number]))
        done.set()

    threading.Thread(target=write_many, daemon=True).start()
    assert not done.wait(0.1)
    gate.open.release(MOST_BATCHES + 1)
    assert done.wait(10)
    eventually(lambda: len(gate.calls) == MOST_BATCHES + 1)
    writer.close()
