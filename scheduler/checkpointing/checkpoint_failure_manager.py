"""Counts the checkpoints that fail in a row, and fails the job when there are too many."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.errors import CheckpointError


class CheckpointFailureManager:
    """``tolerated`` failures in a row are nothing; one more, and ``fail_job(error)`` is called."""

    def __init__(self, tolerated: int, fail_job: Callable[[BaseException], None]) -> None:
        self._tolerated = tolerated
        self.fail_job = fail_job
        self._in_a_row = 0

    def checkpoint_succeeded(self) -> None:
        self._in_a_row = 0

    def checkpoint_failed(self, checkpoint_id: int, why: str, cause: BaseException | None) -> None:
        """A checkpoint failed for a reason of its own, and not because the job stopped running."""
        self._in_a_row += 1
        if self._in_a_row <= self._tolerated:
            return
        count, self._in_a_row = self._in_a_row, 0
        failed = "a checkpoint has" if count == 1 else f"{count} checkpoints in a row have"
        error = CheckpointError(
            f"{failed} failed, and the job tolerates {self._tolerated}; checkpoint "
            f"{checkpoint_id}: {why}"
        )
        error.__cause__ = cause
        self.fail_job(error)
