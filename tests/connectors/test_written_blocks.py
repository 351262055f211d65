"""Which written blocks count, after whatever failures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.connectors.ray.written_blocks import BlockRange, WrittenBlocks

# What happens to a subtask: it writes a block, takes a checkpoint; that is complete, and the
# subtask hears it; or it fails, and goes on
STEPS = st.lists(st.sampled_from(["write", "checkpoint", "complete", "hear", "fail"]), max_size=30)


class Subtask:
    """It writes consecutive numbers, and goes back to those of its last complete checkpoint when it
    fails."""

    def __init__(self, written: WrittenBlocks) -> None:
        self.written = written
        self.attempt = self.next = self.put = 0
        self.taken: list[tuple[int, BlockRange]] = []
        self.completed: list[tuple[int, BlockRange]] = []

    def write(self) -> None:
        self.written.add(0, self.attempt, self.next)
        self.next, self.put = self.next + 1, self.put + 1

    def checkpoint(self) -> None:
        self.taken.append(
            (self.next, BlockRange("", 0, self.attempt, self.put, None, begins_anew=False))
        )

    def complete(self) -> None:
        self.completed, self.taken = self.completed + self.taken, []

    def hear(self) -> None:
        for _, blocks in self.completed:
            self.written.commit(blocks)

    def fail(self) -> None:
        self.next = self.completed[-1][0] if self.completed else 0
        self.attempt = self.attempt + 1
        self.put = 0
        self.taken = []
        self.hear()  # the new attempt commits again what its checkpoint has


@given(STEPS)
def test_an_attempt_that_goes_on_from_a_checkpoint_adds_to_what_was_committed(
    steps: list[str],
) -> None:
    written = WrittenBlocks()
    subtask = Subtask(written)
    for step in [*steps, "checkpoint", "complete", "hear"]:
        getattr(subtask, step)()
    assert written.committed() == list(range(subtask.next))
    written.commit(
        BlockRange("", 0, subtask.attempt, subtask.put, of_subtasks=1, begins_anew=False)
    )
    assert written.is_complete
    assert written.committed() == list(range(subtask.next))


def test_an_attempt_that_begins_anew_replaces_what_earlier_ones_have_written() -> None:
    written = WrittenBlocks()
    for attempt, refs in ((0, "ab"), (1, "cd")):
        for ref in refs:
            written.add(0, attempt, ref)
        written.commit(BlockRange("", 0, attempt, 2, of_subtasks=1, begins_anew=True))
    written.commit(BlockRange("", 0, 0, 2, of_subtasks=1, begins_anew=True))
    assert written.committed() == ["c", "d"]
