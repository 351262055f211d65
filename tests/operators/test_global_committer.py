"""A sink with a global committer: what it commits together, when, and what it gets again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flinkpy.core.elements import Batch, CheckpointBarrier, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.env.submission import job_graph, stream_graph
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.operators.sinks.global_commits import GlobalCommitterOperator, SinkWriterOperator
from flinkpy.operators.sinks.sink_port import (
    Committer,
    GlobalCommitter,
    Sink,
    SinkWriter,
    SupportsGlobalCommitter,
)
from flinkpy.testing import embedded_environment
from flinkpy.testing.connectors.sink_world import WITHOUT_CHECKPOINTS, SinkWorld
from tests.operators.harness import ChainHarness, linear

COMMITTED: list[tuple[int | None, list[Any]]] = []
CALLS: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_yet() -> None:
    COMMITTED.clear()
    CALLS.clear()


class Together(Sink, SupportsGlobalCommitter):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return Gathering()

    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        return Noting()


class Gathering(SinkWriter):
    def __init__(self) -> None:
        self._gathered: list[Any] = []

    def write_batch(self, batch: Batch) -> None:
        assert isinstance(batch, RowBatch)
        self._gathered += batch.values

    def prepare_commit(self) -> list[Any]:
        prepared, self._gathered = self._gathered, []
        return prepared


class Noting(GlobalCommitter):
    def commit(self, committables: Sequence[Any], checkpoint_id: int | None) -> Any:
        COMMITTED.append((checkpoint_id, sorted(committables)))

    def close(self) -> None:
        CALLS.append("close")


# -- when, and what together -----------------------------------------------------------------------


def test_what_all_writers_prepared_for_a_checkpoint_is_committed_together_when_it_is_complete() -> (
    None
):
    world = SinkWorld(Together(), 3)
    world.feed(7)
    checkpoint = world.barrier()
    world.feed(2)
    assert COMMITTED == []
    world.complete(checkpoint)
    assert COMMITTED == [(1, [0, 1, 2, 3, 4, 5, 6])]
    world.close()
    assert CALLS == ["close"]


def test_checkpoints_are_committed_one_by_one_and_one_of_nothing_not_at_all() -> None:
    world = SinkWorld(Together(), 2)
    world.feed(2)
    world.barrier()
    world.barrier()
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [(1, [0, 1]), (3, [2, 3])]
    world.close()


def test_what_an_aborted_checkpoint_has_goes_with_the_next_under_its_own_id() -> None:
    world = SinkWorld(Together(), 2)
    world.feed(2)
    world.abort(world.barrier())
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [(1, [0, 1]), (2, [2, 3])]
    world.close()


def test_what_some_writers_sent_for_a_checkpoint_that_never_came_goes_with_the_next() -> None:
    world = SinkWorld(Together(), 2)
    world.feed(2)
    world.abort(world.barrier(1))
    world.complete(world.barrier())
    assert COMMITTED == [(2, [0, 1])]
    world.close()


# -- failures --------------------------------------------------------------------------------------


def test_after_a_failure_before_the_commit_the_next_attempt_commits_what_the_checkpoint_has() -> (
    None
):
    world = SinkWorld(Together(), 2)
    world.feed(4)
    world.complete(world.barrier(), told=lambda subtask: False)
    world.feed(4)
    world.crash(3)
    assert COMMITTED == [(1, [0, 1, 2, 3])]
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [(1, [0, 1, 2, 3]), (2, [4, 5])]
    world.close()


def test_after_a_failure_behind_the_commit_the_same_comes_again_under_the_same_id() -> None:
    world = SinkWorld(Together(), 2)
    world.feed(4)
    world.complete(world.barrier())
    world.crash(1)
    assert COMMITTED == [(1, [0, 1, 2, 3])] * 2
    world.close()


def test_a_commit_that_raises_fails_the_task_and_is_tried_again_from_the_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(self: Any, committables: Any, checkpoint_id: Any) -> None:
        raise OSError("the catalog is away")

    with monkeypatch.context() as patch:
        patch.setattr(Noting, "commit", refuse)
        world = SinkWorld(Together(), 2)
        world.feed(2)
        with pytest.raises(OSError, match="the catalog is away"):
            world.complete(world.barrier())
    world.crash()
    assert COMMITTED == [(1, [0, 1])]
    world.close()


def test_what_the_committer_gives_back_comes_again_under_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def put_off(self: Any, committables: Any, checkpoint_id: Any) -> Any:
        COMMITTED.append((checkpoint_id, sorted(committables)))
        return committables if len(COMMITTED) == 1 else None

    monkeypatch.setattr(Noting, "commit", put_off)
    world = SinkWorld(Together(), 2)
    world.feed(2)
    world.complete(world.barrier())
    world.feed(2)
    world.complete(world.barrier())
    assert COMMITTED == [(1, [0, 1]), (1, [0, 1]), (2, [2, 3])]
    world.close()


# -- the end ---------------------------------------------------------------------------------------


def test_behind_the_end_the_rest_waits_for_the_last_checkpoint_in_the_committer() -> None:
    world = SinkWorld(Together(), 2)
    world.feed(3)
    world.end_input()
    assert COMMITTED == []
    assert world.committer is not None
    assert world.committer.waits_for_final_checkpoint
    assert not any(writer.waits_for_final_checkpoint for writer in world.operators)
    world.last_checkpoint()
    assert COMMITTED == [(1, [0, 1, 2])]
    world.close()


def test_without_checkpoints_all_is_committed_at_the_end_under_no_id() -> None:
    world = SinkWorld(Together(), 2, WITHOUT_CHECKPOINTS)
    world.feed(3)
    world.end_input()
    assert COMMITTED == [(None, [0, 1, 2])]
    world.close()


def test_without_checkpoints_nothing_can_be_put_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Noting, "commit", lambda self, committables, checkpoint_id: committables)
    world = SinkWorld(Together(), 2, WITHOUT_CHECKPOINTS)
    world.feed(3)
    with pytest.raises(ProgramError, match="Noting put off 3 committables, and no checkpoint"):
        world.end_input()
    world.close()


# -- in a chain ------------------------------------------------------------------------------------


def test_in_one_chain_a_writer_sends_before_the_barrier_what_the_committer_then_saves() -> None:
    """And not earlier: what another operator's timer writes while the barrier waits is part of the
    checkpoint, too."""
    writer = SinkWriterOperator(Together())
    harness = ChainHarness(
        linear(MapOperator(lambda value: value), writer, GlobalCommitterOperator(Together()))
    )
    harness.push([1, 2])
    writer.prepare_snapshot_pre_barrier(5)
    assert COMMITTED == []
    harness.push([3])
    saved: list[Any] = []
    harness.chain.process_barrier(
        CheckpointBarrier(5, 0), lambda barrier: saved.append(harness.chain.freeze_state(barrier))
    )
    harness.push([4])
    harness.chain.notify_checkpoint(5, True)
    assert len(saved) == 1
    assert COMMITTED == [(5, [1, 2, 3])]
    harness.chain.close()


def test_what_a_writer_sends_is_in_front_of_the_barrier() -> None:
    harness = ChainHarness(linear(MapOperator(lambda value: value), SinkWriterOperator(Together())))
    harness.push([1, 2])
    barrier = CheckpointBarrier(5, 0)
    harness.chain.process_barrier(barrier, lambda passed: None)
    assert harness.writers[0].elements == [RowBatch([1, 2]), barrier]
    harness.chain.close()


# -- programs --------------------------------------------------------------------------------------


def program_with(
    sink: Any, parallelism: int = 2, options: dict[str, Any] | None = None
) -> RecordedProgram:
    env = embedded_environment(options, parallelism=parallelism)
    env.from_collection([1, 2, 3]).map(lambda value: value).sink_to(sink)
    return env.program


def nodes(program: RecordedProgram) -> list[tuple[str, int]]:
    """Of the sink: name and parallelism."""
    found = list(stream_graph(program, "job").nodes.values())
    return [(node.name, node.parallelism) for node in found[2:]]


def tasks(program: RecordedProgram) -> list[str]:
    return [vertex.name for vertex in job_graph(program, "job").vertices]


def test_the_committer_is_a_node_of_its_own_with_one_subtask() -> None:
    assert nodes(program_with(Together())) == [("Sink: Writer", 2), ("Global Committer", 1)]
    assert tasks(program_with(Together()))[-1] == "Global Committer"


def test_it_is_chained_behind_one_writer() -> None:
    assert tasks(program_with(Together(), 1))[-1].endswith("Sink: Writer -> Global Committer")


class Plain(Sink):
    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return Gathering()


def test_a_sink_without_one_is_a_single_node() -> None:
    assert nodes(program_with(Plain())) == [("Sink: Writer", 2)]


def test_name_and_uid_of_the_sink_name_both_its_operators() -> None:
    env = embedded_environment(parallelism=2)
    sink = env.from_collection([1]).sink_to(Together()).name("orders").uid("table")
    assert sink.get_name() == "Sink: orders"
    _, *found = stream_graph(env.program, "job").nodes.values()
    assert [(node.name, node.uid) for node in found] == [
        ("Sink: orders", "table"),
        ("orders: Global Committer", "table: Global Committer"),
    ]


class Both(Together):
    def create_committer(self, context: OperatorContext) -> Committer | None:
        return None


class NoSink(SupportsGlobalCommitter):
    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        return Noting()

    def write(self, value: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("sink", "why"),
    [
        (Both(), r"Both has a committer and a global committer.*leave create_committer\(\)"),
        (NoSink(), "NoSink supports a global committer, and is no sink: derive it from Sink too"),
    ],
)
def test_a_sink_that_cannot_be_committed_so_is_refused(sink: Any, why: str) -> None:
    with pytest.raises(ProgramError, match=why):
        program_with(sink)


def test_unaligned_checkpoints_are_refused_as_they_would_tear_a_checkpoint_apart() -> None:
    options: dict[str, Any] = {"execution.checkpointing.unaligned": True}
    assert tasks(program_with(Together(), 2, options)), "without checkpoints it does not matter"
    options["execution.checkpointing.interval"] = "1 s"
    with pytest.raises(
        ProgramError,
        match=r"'Global Committer'.*set execution\.checkpointing\.unaligned\.enabled to false",
    ):
        tasks(program_with(Together(), 2, options))


def test_a_sink_that_makes_no_committer_is_told_what_to_return() -> None:
    class Making(Together):
        def create_global_committer(self, context: OperatorContext) -> Any:
            return None

    with pytest.raises(
        TypeError,
        match=r"Making\.create_global_committer\(\) gives None; it must return a GlobalCommitter",
    ):
        SinkWorld(Making())
