"""The numbers of a job's checkpoints. None is used twice, whoever runs the job."""

from __future__ import annotations

OF_A_GENERATION = 1000


class CheckpointNumbers:
    """Gives out the numbers of one JobMaster's checkpoints."""

    def __init__(self, generation: int) -> None:
        self.generation = generation
        self._next = first_number(None, generation)

    def take(self) -> int:
        """The number of a checkpoint that begins."""
        number = self._next
        self._next += 1
        return number

    def go_on_after(self, restored: int) -> None:
        """The job starts from the checkpoint of this number."""
        self._next = first_number(restored, self.generation)


def first_number(restored: int | None, generation: int) -> int:
    """The number of the first checkpoint that a JobMaster takes. ``restored`` is the number of the
    checkpoint it starts the job from, if there is one. A JobMaster of a later ``generation`` does
    not know how many checkpoints earlier ones have taken since then, so it skips the rest of that
    block of numbers and ``generation`` further blocks.

    >>> (
    ...     first_number(None, 0),
    ...     first_number(7, 0),
    ...     first_number(None, 1),
    ...     first_number(7, 1),
    ...     first_number(1003, 2),
    ... )
    (1, 8, 2001, 2001, 4001)
    """
    if not generation:
        return 1 if restored is None else restored + 1
    return ((restored or 0) // OF_A_GENERATION + generation + 1) * OF_A_GENERATION + 1
