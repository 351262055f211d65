"""A sink in two phases: what its writer prepares, when that is committed, and what a writer gets
back."""

from __future__ import annotations

import doctest
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks import sink_port
from flinkpy.operators.sinks.pending_commits import PendingCommits
from flinkpy.operators.sinks.sink_operator import SinkOperator
from flinkpy.operators.sinks.sink_port import Committer, Sink, SinkWriter
from flinkpy.state.snapshots.saved_state import SavedState
from tests.connectors.sink_world import SinkWorld

COMMITTED: list[list[Any]] = []
CALLS: list[Any] = []


class Gathering(Sink):
    """Gathers records, and prepares those there are in pairs: one that is left over is state of the
    writer."""

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return Pairs([])

    def restore_writer(self, context: OperatorContext, states: Sequence[Any]) -> SinkWriter:
        CALLS.append(("restore", sorted(states)))
        return Pairs(list(states))

    def create_committer(self, context: OperatorContext) -> Committer:
        return Noting()


class Pairs(SinkWriter):
    def __init__(self, gathered: list[Any]) -> None:
        self._gathered, self._flushed = gathered, 0

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self._gathered += batch.values

    def flush(self) -> None:
        self._flushed = len(self._gathered)

    def finish(self) -> None:
        self._gathered.append("end")
        self.flush()

    def prepare_commit(self) -> list[Any]:
        assert self._flushed == len(self._gathered), "prepared what was not flushed"
        whole = len(self._gathered) - len(self._gathered) % 2
        pairs, self._gathered = self._gathered[:whole], self._gathered[whole:]
        return pairs

    def snapshot_state(self, checkpoint_id: int) -> list[Any]:
        return list(self._gathered)


class Noting(Committer):
    def commit(self, committables: Sequence[Any]) -> None:
        COMMITTED.append(list(committables))

    def close(self) -> None:
        CALLS.append("close")


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    COMMITTED.clear()
    CALLS.clear()


def test_the_examples_run() -> None:
    assert doctest.testmod(sink_port, extraglobs={"UpperWriter": None}).failed == 0


def test_a_completed_checkpoint_commits_what_was_prepared_for_it_and_for_those_before() -> None:
    world = SinkWorld(Gathering())
    world.feed(2)
    world.barrier()
    world.feed(2)
    second = world.barrier()
    world.feed(2)
    world.barrier()
    world.complete(second)
    assert COMMITTED == [[0, 1], [2, 3]]
    world.complete(second)
    assert COMMITTED == [[0, 1], [2, 3]]
    world.close()
    assert CALLS == ["close"]


def test_what_was_prepared_for_an_aborted_checkpoint_goes_with_the_next() -> None:
    world = SinkWorld(Gathering())
    world.feed(2)
    world.abort(world.barrier())
    assert COMMITTED == []
    world.complete(world.barrier())
    assert COMMITTED == [[0, 1]]
    world.close()


def test_a_restored_sink_commits_again_and_its_writer_goes_on_with_its_state() -> None:
    world = SinkWorld(Gathering())
    world.feed(3)
    world.complete(world.barrier())
    world.feed(4)
    world.crash()
    assert COMMITTED == [[0, 1], [0, 1]]
    assert CALLS == ["close", ("restore", [2])]
    world.feed(1)
    world.complete(world.barrier())
    assert COMMITTED[2:] == [[2, 3]]
    world.close()


def test_state_that_no_writer_would_get_back_is_refused() -> None:
    class Forgetful(Gathering):
        restore_writer = Sink.restore_writer

    world = SinkWorld(Forgetful())
    world.barrier()  # there is none yet
    world.feed(1)
    with pytest.raises(
        ProgramError, match=r"define restore_writer\(self, context, states\) in Forgetful"
    ):
        world.barrier()
    world.close()


def test_state_of_writers_is_shared_out_to_another_number_of_subtasks() -> None:
    world = SinkWorld(Gathering(), 3)
    world.feed(3)
    world.complete(world.barrier())
    world.crash(2)
    states = [call[1] for call in CALLS if call[0] == "restore"]
    assert len(states) == 2
    assert sorted(state for of_writer in states for state in of_writer) == [0, 1, 2]
    world.close()


def test_what_a_writer_wrote_for_several_checkpoints_goes_to_one_subtask_and_in_its_order() -> None:
    world = SinkWorld(Gathering(), 2)
    world.feed(4)
    world.barrier()
    world.feed(4)
    world.complete(world.barrier())
    COMMITTED.clear()
    world.crash(3)
    of_writers = [[each for each in COMMITTED if each[0] % 2 == number] for number in range(2)]
    assert of_writers == [[[0, 2], [4, 6]], [[1, 3], [5, 7]]]
    world.close()


def test_a_savepoint_that_has_what_is_pending_of_each_checkpoint_apart_is_restored() -> None:
    committed: list[Any] = []
    pending = PendingCommits(lambda ready, _: committed.append(ready), "Committer")
    pending.restore([(2, ["b"]), (1, ["a"])])
    pending.commit_all()
    assert committed == [["a"], ["b"]]


def test_behind_the_end_the_rest_waits_for_the_last_checkpoint() -> None:
    world = SinkWorld(Gathering())
    world.feed(1)
    early = world.barrier()
    world.end_input()
    world.complete(early)
    assert COMMITTED == []
    assert world.operators[0].waits_for_final_checkpoint
    world.last_checkpoint()
    assert COMMITTED == [[0, "end"]]
    world.close()


def test_without_checkpoints_the_rest_is_committed_at_once() -> None:
    world = SinkWorld(Gathering(), configuration={})
    world.feed(1)
    world.end_input()
    assert COMMITTED == [[0, "end"]]
    assert not world.operators[0].waits_for_final_checkpoint
    world.close()


def test_who_knows_that_no_checkpoint_comes_any_more_may_commit_what_is_left() -> None:
    world = SinkWorld(Gathering())
    world.feed(2)
    world.barrier()
    world.feed(1)
    world.end_input()
    [operator] = world.operators
    assert isinstance(operator, SinkOperator)
    operator.commit_pending()
    assert COMMITTED == [[0, 1], [2, "end"]]
    assert not world.operators[0].waits_for_final_checkpoint
    world.close()


def test_a_commit_that_raises_fails_the_task_and_is_tried_again_from_the_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Any, committables: Any) -> None:
        raise OSError("not now")

    world = SinkWorld(Gathering())
    world.feed(2)
    with monkeypatch.context() as patch:
        patch.setattr(Noting, "commit", refuse)
        with pytest.raises(OSError, match="not now"):
            world.complete(world.barrier())
    world.crash()
    assert COMMITTED == [[0, 1]]
    world.close()


def test_a_sink_without_a_committer_and_without_state_saves_nothing() -> None:
    class Plain(Sink):
        def create_writer(self, context: OperatorContext) -> SinkWriter:
            return PlainWriter()

    world = SinkWorld(Plain())
    world.feed(1)
    assert world.barrier().states == [SavedState()]
    world.end_input()
    assert not world.operators[0].waits_for_final_checkpoint
    world.close()


class PlainWriter(SinkWriter):
    def write_batch(self, batch: Batch) -> None:
        pass


def test_a_writer_that_prepares_none_is_told_what_to_return() -> None:
    class Forgetful(Pairs):
        def prepare_commit(self) -> Any:
            return None

    class Forgetting(Gathering):
        def create_writer(self, context: OperatorContext) -> SinkWriter:
            return Forgetful([])

    with pytest.raises(
        Exception,
        match=r"Forgetful\.prepare_commit\(\) gives None; it must return committables in a list",
    ):
        SinkWorld(Forgetting()).barrier()


def test_a_writer_whose_state_is_no_list_is_told_what_to_return() -> None:
    class Counting(Pairs):
        def snapshot_state(self, checkpoint_id: int) -> Any:
            return 5

    with pytest.raises(
        Exception, match=r"Counting\.snapshot_state\(\) gives 5; it must return states in a list"
    ):
        SinkWorld(with_writer(Counting)).barrier()


def test_committables_that_cannot_be_pickled_are_told_by_the_call_that_gave_them() -> None:
    class Locking(Pairs):
        def prepare_commit(self) -> list[Any]:
            return [threading.Lock()]

    with pytest.raises(
        Exception,
        match=(
            r"what Locking\.prepare_commit\(\) gives must be picklable, as it is part of the "
            r"checkpoint: .*lock"
        ),
    ):
        SinkWorld(with_writer(Locking)).barrier()


def test_a_committer_that_gives_back_no_list_is_told_what_to_return() -> None:
    class Claiming(Committer):
        def commit(self, committables: Sequence[Any]) -> Any:
            return True

    class Claimed(Gathering):
        def create_committer(self, context: OperatorContext) -> Committer:
            return Claiming()

    world = SinkWorld(Claimed())
    world.feed(2)
    with pytest.raises(
        Exception, match=r"Claiming\.commit\(\) gives True; it must return committables in a list"
    ):
        world.complete(world.barrier())


def test_a_sink_that_makes_no_writer_is_told_what_to_return() -> None:
    class Making(Sink):
        def create_writer(self, context: OperatorContext) -> Any:
            return None

    with pytest.raises(
        Exception, match=r"Making\.create_writer\(\) gives None; it must return a SinkWriter"
    ):
        SinkWorld(Making())


def with_writer(writer: type[Pairs]) -> Sink:
    class Writing(Gathering):
        def create_writer(self, context: OperatorContext) -> SinkWriter:
            return writer([])

    return Writing()
