"""What the files of one subtask are called, hidden and when they are seen; and what earlier
attempts left of theirs.

A hidden name ends in ``.inprogress.<attempt>-<checkpoint>``: the last checkpoint before the file
was begun. All files end at each checkpoint. So after a restore of checkpoint 7, files begun behind
7 or a later one hold only records that will come again: they are leftovers. Files begun before 7
belong to a complete checkpoint, and some subtask commits them."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass

from flinkpy.connectors.files.writing.part_storage import PartStorage
from flinkpy.core.ids import OperatorId
from flinkpy.operators.context import TaskInfo


@dataclass(frozen=True)
class PartFile:
    """A file that is whole, but hidden: where it is, where it will be seen, and which other files
    are in it."""

    hidden: str
    final: str
    sources: tuple[str, ...] = ()


class PartNames:
    """The names of one attempt's files. ``piece`` makes them differ from those of all other
    attempts, ``operator`` from those of another sink that writes into the same folder."""

    def __init__(
        self, path: str, prefix: str, suffix: str, task: TaskInfo, operator: OperatorId, piece: str
    ) -> None:
        self.folder = path
        self._suffix = suffix
        self._task = task
        self._sink_stem = f"{prefix}-{task.attempt_id.job_id:.8}-{operator:.6}-"
        self._stem = f"{self._sink_stem}{task.subtask_index}{piece}"
        self.checkpoint_id = 0  # the last one, for files that are begun now

    @staticmethod
    def of_task(
        path: str, prefix: str, suffix: str, task: TaskInfo, operator: OperatorId, restored: bool
    ) -> PartNames:
        """A restored attempt may follow others whose files are seen already: its names get a random
        piece."""
        return PartNames(
            path, prefix, suffix, task, operator, f"-r{secrets.token_hex(4)}" if restored else ""
        )

    def part(self, bucket: str, number: int) -> PartFile:
        """The names of that part."""
        folder = os.path.join(self.folder, bucket)
        name = f"{self._stem}-{number}{self._suffix}" if number else f"{self._stem}{self._suffix}"
        return PartFile(os.path.join(folder, self._hidden(name)), os.path.join(folder, name))

    def joined(self, parts: list[PartFile]) -> PartFile:
        """The names of the file that these parts of one folder make."""
        folder, name = os.path.split(parts[0].final)
        name = f"compacted-{name}"
        sources = tuple(part.hidden for part in parts)
        return PartFile(
            os.path.join(folder, self._hidden(name)), os.path.join(folder, name), sources
        )

    def _hidden(self, name: str) -> str:
        return f".{name}.inprogress.{self._task.attempt_id.attempt}-{self.checkpoint_id}"

    def clear_leftovers(self, storage: PartStorage, restored_checkpoint: int | None) -> None:
        """Removes hidden files of this job's sink that nobody will commit. None: no checkpoint was
        restored, so all of them.

        Subtasks share the files among them: each takes its own, and those of subtasks that there
        are no more. Those of later attempts stay: the order to start this one may have come late,
        when nobody waits for it any more."""
        stem = re.escape(self._sink_stem)
        hidden = re.compile(
            rf"\.(?:compacted-)?{stem}(\d+)(?!\d).*\.inprogress\.(\d+)-(\d+)", re.DOTALL
        )
        for path in storage.below(self.folder):
            found = hidden.fullmatch(os.path.basename(path))
            if found is None:
                continue
            subtask, attempt, checkpoint_id = map(int, found.groups())
            is_earlier = (
                subtask % self._task.parallelism == self._task.subtask_index
                and attempt < self._task.attempt_id.attempt
            )
            if is_earlier and (restored_checkpoint is None or checkpoint_id >= restored_checkpoint):
                storage.remove(path)
