"""What was prepared and is not committed yet, by the checkpoint that has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from flinkpy.core.errors import ProgramError
from flinkpy.core.users_values import several
from flinkpy.state.api import ListState

# commits what was prepared for a checkpoint (None: at the end of a job without any), and gives back
# what could not be committed yet
Commit: TypeAlias = Callable[[Sequence[Any], "int | None"], "Sequence[Any] | None"]
OfCheckpoint: TypeAlias = tuple[int, list[Any]]


class PendingCommits:
    """Committables go to ``commit`` once for each checkpoint, the oldest first. What it gives back
    stays, and so does everything from the checkpoint on at which it raises. ``committer`` is the
    name for errors."""

    def __init__(self, commit: Commit, committer: str) -> None:
        self._commit, self._committer = commit, committer
        self._of_checkpoints: dict[int, list[Any]] = {}
        self._rest: list[Any] = []  # prepared at the end, and part of no checkpoint yet

    @property
    def waiting(self) -> bool:
        """Whether something was prepared and not committed."""
        return bool(self._of_checkpoints or self._rest)

    def restore(self, saved: Iterable[OfCheckpoint | list[OfCheckpoint]]) -> None:
        """Takes back what ``save`` saved. Older savepoints have a checkpoint's apart."""
        for each in saved:
            for checkpoint_id, committables in [each] if isinstance(each, tuple) else each:
                self.add(committables, checkpoint_id)

    def add(self, committables: Sequence[Any], checkpoint_id: int | None) -> None:
        """They were prepared for that checkpoint. None: at the end, so the next one has them."""
        if not committables:
            return
        if checkpoint_id is None:
            self._rest += committables
        else:
            self._of_checkpoints.setdefault(checkpoint_id, []).extend(committables)

    def save(self, state: ListState[Any], checkpoint_id: int, prepared_by: str) -> None:
        """The checkpoint is taken, and has all that is pending, as one element: whichever subtask
        takes it over commits what this writer wrote in the order in which it was written.
        ``prepared_by`` is the call to name if it cannot be pickled."""
        rest, self._rest = self._rest, []
        self.add(rest, checkpoint_id)
        pending = sorted(self._of_checkpoints.items(), key=lambda each: each[0])
        try:
            state.update([pending] if pending else [])
        except TypeError as error:
            raise TypeError(
                f"what {prepared_by} gives must be picklable, as it is part of the checkpoint: "
                f"{error}"
            ) from None

    def commit_up_to(self, checkpoint_id: int) -> None:
        """This checkpoint is complete, and with it all before it."""
        for number in sorted(self._of_checkpoints):
            if number > checkpoint_id:
                return
            left = self._try(self._of_checkpoints[number], number)
            del self._of_checkpoints[number]
            self.add(left, number)

    def commit_all(self) -> None:
        """Commits everything that was prepared, or as much as the committer can."""
        if self._of_checkpoints:
            self.commit_up_to(max(self._of_checkpoints))
        if self._rest:
            self._rest = self._try(self._rest, None)

    def commit_at_last(self) -> None:
        """The same at the end of a job without checkpoints. Raises ProgramError if something is
        left: nothing follows with which it could be tried again."""
        self.commit_all()
        if self.waiting:
            left = len(self._rest) + sum(map(len, self._of_checkpoints.values()))
            raise ProgramError(
                f"{self._committer} put off {left} committables, and no checkpoint follows at "
                "which they could be committed: take checkpoints "
                "(execution.checkpointing.interval), or let commit() wait"
            )

    def _try(self, committables: list[Any], checkpoint_id: int | None) -> list[Any]:
        left = self._commit(committables, checkpoint_id)
        if left is None:
            return []
        return list(several(left, f"{self._committer}.commit()", "committables"))

    def __repr__(self) -> str:
        return (
            f"<PendingCommits of {self._committer}: checkpoints {sorted(self._of_checkpoints)}, "
            f"{len(self._rest)} behind them>"
        )
