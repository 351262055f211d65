"""Whatever order checkpoints begin, arrive and end in: none that lives ever lacks a file, and
nothing stays after the end."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from flinkpy.core.ids import OperatorId
from flinkpy.core.lifecycles import JobState
from flinkpy.core.options.checkpointing import CheckpointRetention, CheckpointSettings
from flinkpy.graph.checkpoints import (
    SHARED,
    CompletedCheckpoint,
    KeyedPieces,
    OperatorCheckpoint,
    OperatorSubtaskState,
    StateHandle,
)
from flinkpy.scheduler.checkpointing.completed_checkpoint_store import CompletedCheckpointStore
from flinkpy.scheduler.checkpointing.shared_state_registry import SharedStateRegistry
from flinkpy.scheduler.protocol import Command, DiscardSharedFiles, RestoreFrom

SUBTASKS = 2


def pieces_of(files: set[str]) -> OperatorSubtaskState:
    return OperatorSubtaskState(
        pieces=KeyedPieces(
            "rocksdb", {name: StateHandle(1, 0, path=SHARED + name) for name in files}
        )
    )


def checkpoint_of(
    checkpoint_id: int, states: dict[int, set[str]], location: str | None = None
) -> CompletedCheckpoint:
    subtasks = {index: pieces_of(files) for index, files in states.items()}
    return CompletedCheckpoint(
        checkpoint_id,
        0,
        {OperatorId("a"): OperatorCheckpoint("A", SUBTASKS, 128, subtasks)},
        location,
    )


def test_a_file_goes_with_the_last_checkpoint_that_uses_it() -> None:
    registry = SharedStateRegistry()
    registry.use(1, {"1-a", "1-b"})
    registry.use(2, {"1-b", "2-a"})
    assert registry.release(1) == [DiscardSharedFiles(("1-a",))]
    assert registry.release(2) == [DiscardSharedFiles(("1-b", "2-a"))]
    assert registry.release(2) == []


def test_a_checkpoint_keeps_what_it_may_build_on_until_it_says_what_it_uses() -> None:
    registry = SharedStateRegistry()
    registry.use(1, {"1-a", "1-b"})
    registry.build_on(2, 1)
    assert registry.release(1) == []  # it was replaced; the second one is under way
    registry.use(2, {"1-b"})
    assert registry.settle(2, {"1-b"}) == [DiscardSharedFiles(("1-a",))]


def test_a_late_acknowledgement_takes_nothing_from_another_checkpoint() -> None:
    registry = SharedStateRegistry()
    registry.use(1, {"1-a"})
    registry.build_on(2, 1)
    registry.release(2)
    registry.use(2, {"1-a", "2-a"})
    assert registry.release(2) == [DiscardSharedFiles(("2-a",))]


def test_files_of_a_claimed_checkpoint_are_deleted_where_they_are() -> None:
    registry = SharedStateRegistry()
    registry.claim(checkpoint_of(7, {0: {"7-a"}}, "other/chk-7"))
    registry.use(8, {"8-a"})
    assert registry.release(7) == [DiscardSharedFiles(("7-a",), "other/chk-7")]


@pytest.mark.parametrize(("incremental", "base"), [(True, 3), (False, None)])
def test_a_checkpoint_builds_on_the_newest_of_the_job_if_they_are_incremental(
    incremental: bool, base: int | None
) -> None:
    store = CompletedCheckpointStore(CheckpointSettings(incremental=incremental), [])
    assert store.base_id is None
    store.restore(RestoreFrom(checkpoint_of(2, {})))
    assert store.base_id is None  # somebody else's: its files may go at any time
    store.add(checkpoint_of(3, {}))
    assert store.base_id == base


@pytest.mark.parametrize("retention", CheckpointRetention)
@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELED])
def test_a_claimed_checkpoint_stays_when_the_job_ends_before_it_has_one_of_its_own(
    state: JobState, retention: CheckpointRetention
) -> None:
    commands: list[Command] = []
    store = CompletedCheckpointStore(
        CheckpointSettings(incremental=True, retention=retention), commands
    )
    store.restore(RestoreFrom(checkpoint_of(2, {0: {"2-a"}}, "other/chk-2"), claim=True))
    store.shared.build_on(3, 2)
    store.job_ends(state)
    assert commands == []
    assert store.shared.release(3) == []
    store.shared.use(3, {"2-a", "3-a"})  # a task was late to acknowledge
    assert store.shared.release(3) == [DiscardSharedFiles(("3-a",))], (
        "the claimed checkpoint would lack a file"
    )


class Job(RuleBasedStateMachine):
    """Two subtasks, their files, and the store of complete checkpoints. ``files`` are on the
    disk."""

    @initialize(
        retained=st.integers(1, 3),
        retention=st.sampled_from(CheckpointRetention),
        claim=st.none() | st.booleans(),
        end=st.sampled_from([JobState.FINISHED, JobState.CANCELED, JobState.FAILED]),
    )
    def begin(
        self, retained: int, retention: CheckpointRetention, claim: bool | None, end: JobState
    ) -> None:
        self.end, self.has_claimed = end, bool(claim)
        self.commands: list[Command] = []
        self.store = CompletedCheckpointStore(
            CheckpointSettings(retained=retained, retention=retention, incremental=True),
            self.commands,
        )
        # the claimed checkpoint's location, or None, and the name
        self.files: set[tuple[str | None, str]] = set()
        self.states: dict[int, dict[int, set[str]]] = {}  # what each subtask saved, by checkpoint
        # the base, and who has not acknowledged yet
        self.pending: dict[int, tuple[int | None, set[int]]] = {}
        self.late: list[tuple[int, int, set[str]]] = []
        self.foreign: set[tuple[str | None, str]] = set()  # that the job must not touch
        self.number = 0
        if claim is not None:
            other = checkpoint_of(0, {0: {"0-x", "0-y"}, 1: {"0-z"}}, "other/chk-0")
            self.files |= {("other/chk-0", name) for name in other.shared_files()}
            self.store.restore(RestoreFrom(other, claim=claim))
            if claim:
                self.states[0] = {0: {"0-x", "0-y"}, 1: {"0-z"}}
            else:
                self.foreign = set(self.files)

    def carry_out(self) -> None:
        for command in self.commands:
            if isinstance(command, DiscardSharedFiles):
                self.files -= {(command.location, name) for name in command.files}
        self.commands.clear()

    # -- what happens ------------------------------------------------------------------------------

    @precondition(lambda self: len(self.pending) < 3)
    @rule()
    def trigger(self) -> None:
        self.number += 1
        base = self.store.base_id
        if base is not None:
            self.store.shared.build_on(self.number, base)
        self.pending[self.number] = base, set(range(SUBTASKS))
        self.states[self.number] = {}

    @precondition(lambda self: any(awaited for _, awaited in self.pending.values()))
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        number = data.draw(
            st.sampled_from([each for each, (_, awaited) in self.pending.items() if awaited])
        )
        base, awaited = self.pending[number]
        subtask = data.draw(st.sampled_from(sorted(awaited)))
        awaited.discard(subtask)
        files = self.saved(data, number, base, subtask)
        self.states[number][subtask] = files
        self.store.shared.use(number, files)

    def saved(self, data: st.DataObject, number: int, base: int | None, subtask: int) -> set[str]:
        """A new file or two, and any of those that the base has."""
        before = sorted(self.states[base].get(subtask, ())) if base is not None else []
        kept = data.draw(st.sets(st.sampled_from(before))) if before else set()
        new = {
            f"{number}-{subtask}{letter}" for letter in data.draw(st.sets(st.sampled_from("ab")))
        }
        self.files |= {(None, name) for name in new}
        return kept | new

    @precondition(lambda self: any(not awaited for _, awaited in self.pending.values()))
    @rule(data=st.data())
    def complete(self, data: st.DataObject) -> None:
        number = data.draw(
            st.sampled_from([each for each, (_, awaited) in self.pending.items() if not awaited])
        )
        del self.pending[number]
        for earlier in [each for each in self.pending if each < number]:
            self.abort_one(earlier)
        self.store.add(checkpoint_of(number, self.states[number], f"own/chk-{number}"))
        self.carry_out()

    @precondition(lambda self: self.pending)
    @rule(data=st.data())
    def abort(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(sorted(self.pending)))
        base, awaited = self.pending[number]
        self.late += [
            (number, subtask, self.saved(data, number, base, subtask)) for subtask in awaited
        ]
        self.abort_one(number)

    def abort_one(self, number: int) -> None:
        self.pending.pop(number, None)
        self.commands += self.store.shared.release(number)
        self.carry_out()

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def acknowledge_late(self, data: st.DataObject) -> None:
        """Of a checkpoint that was aborted: the files that only it has go, and no others."""
        number, _, files = self.late.pop(data.draw(st.integers(0, len(self.late) - 1)))
        self.store.shared.use(number, files)
        self.abort_one(number)

    # -- what must hold ----------------------------------------------------------------------------

    def needed(self) -> set[str]:
        kept = [checkpoint.checkpoint_id for checkpoint in self.store.own]
        return {
            name
            for number in kept + list(self.pending)
            for files in self.states[number].values()
            for name in files
        }

    @invariant()
    def no_checkpoint_lacks_a_file(self) -> None:
        on_disk = {name for _, name in self.files}
        assert self.needed() <= on_disk
        bases = {base for base, _ in self.pending.values() if base is not None}
        assert {
            name for base in bases for files in self.states[base].values() for name in files
        } <= on_disk
        assert self.foreign <= self.files

    def teardown(self) -> None:
        if not hasattr(self, "store"):
            return
        for number in list(self.pending):
            self.abort_one(number)
        newest = self.store.own[-1] if self.store.own else None
        if (
            self.has_claimed
            and newest is not None
            and newest.checkpoint_id == 0
            and self.end is not JobState.FINISHED
        ):
            # it is not the job's after all
            self.foreign = {("other/chk-0", name) for name in newest.shared_files()}
        self.store.job_ends(self.end)
        self.carry_out()
        for number, _, files in self.late:  # the job has ended
            self.store.shared.use(number, files)
            self.abort_one(number)
        assert {name for _, name in self.files - self.foreign} == self.needed(), (
            "files that nobody needs are left over, or one is missing"
        )
        assert self.foreign <= self.files
        assert self.store.shared.files == self.needed()


TestAnyJob = Job.TestCase
TestAnyJob.settings = settings(max_examples=200, stateful_step_count=30, deadline=None)
