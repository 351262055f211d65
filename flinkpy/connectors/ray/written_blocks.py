"""The blocks that a job has written, by the subtask and the attempt that wrote them. They are
hidden until they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class BlockRange:
    """What a writer prepares, and its committer commits: blocks up to number ``end`` of those that
    this attempt has written. ``of_subtasks`` is how many subtasks the sink has, if this is the last
    range of its subtask; else None. ``begins_anew``: the job takes no checkpoints, so an attempt
    writes everything again."""

    keeper: str
    subtask: int
    attempt: int
    end: int
    of_subtasks: int | None
    begins_anew: bool


class WrittenBlocks:
    """``add`` blocks, ``commit`` ranges of them. To commit a range twice is the same as to commit
    it once.

    An attempt that goes on from a checkpoint adds to what earlier attempts have committed. One that
    begins anew replaces it, and is seen only when all subtasks have ended.

    >>> written = WrittenBlocks()
    >>> for ref in ("a", "b", "c"): written.add(0, 0, ref)
    >>> written.commit(BlockRange("", 0, 0, 2, None, begins_anew=False)); written.committed()
    ['a', 'b']
    """

    def __init__(self) -> None:
        # by subtask and attempt, those that may still be committed
        self._blocks: dict[tuple[int, int], list[Any]] = {}
        self._committed: dict[tuple[int, int], list[Any]] = {}
        self._ended: set[int] = set()
        self._subtasks: int | None = None
        self._begins_anew = False

    def add(self, subtask: int, attempt: int, ref: Any) -> None:
        """The next block of this attempt."""
        self._blocks.setdefault((subtask, attempt), []).append(ref)

    def of_attempt(self, subtask: int, attempt: int) -> list[Any]:
        """All blocks that it has added, and not lost to a newer attempt."""
        return self._blocks.get((subtask, attempt), [])

    def commit(self, blocks: BlockRange) -> None:
        """Makes the range count. A range of an attempt that a newer one has replaced is ignored."""
        subtask, attempt = blocks.subtask, blocks.attempt
        if blocks.begins_anew:
            if any(key[0] == subtask and key[1] > attempt for key in self._committed):
                return
            self._drop(self._committed, subtask, attempt)
        self._begins_anew = blocks.begins_anew
        committed = self._committed.setdefault((subtask, attempt), [])
        committed += self.of_attempt(subtask, attempt)[len(committed) : blocks.end]
        self._drop(self._blocks, subtask, attempt)
        if blocks.of_subtasks is not None:
            self._subtasks = blocks.of_subtasks
            self._ended.add(subtask)

    @staticmethod
    def _drop(blocks: dict[tuple[int, int], list[Any]], subtask: int, before: int) -> None:
        for key in [key for key in blocks if key[0] == subtask and key[1] < before]:
            del blocks[key]

    @property
    def is_complete(self) -> bool:
        """Whether all subtasks have committed their last range."""
        return self._subtasks is not None and len(self._ended) >= self._subtasks

    def committed(self) -> list[Any]:
        """All blocks that count, in order of subtask, each subtask's in order."""
        if self._begins_anew and not self.is_complete:
            return []
        return [ref for key in sorted(self._committed) for ref in self._committed[key]]
