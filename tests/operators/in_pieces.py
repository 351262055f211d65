"""Checkpoints in pieces, and restarts from them."""

from __future__ import annotations

from pathlib import Path

from flinkpy.core.ids import JobId
from flinkpy.graph.checkpoints import OperatorSubtaskState
from flinkpy.runtime.checkpointing.saved_pieces import with_pieces
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.snapshots.keyed_pieces import read_chunks, read_keyed
from flinkpy.state.snapshots.saved_state import FrozenInPieces, SavedState
from tests.operators.joining import BARRIER, MAX_PARALLELISM, Subtasks


class InPieces:
    """Incremental checkpoints of the subtasks of an operator."""

    def __init__(self, of: Subtasks, folder: Path) -> None:
        self._of = of
        self._storage = FileCheckpointStorage(str(folder), JobId("job"))
        self._number = 0
        self.states: list[OperatorSubtaskState] = []

    def take(self) -> tuple[int, int]:
        """The bytes that were written, and those of all pieces."""
        self._number += 1
        before, self.states = self.states, []
        found = known = 0
        for index, operator in enumerate(self._of.operators):
            frozen = operator.freeze_state(BARRIER).keyed
            assert isinstance(frozen, FrozenInPieces)
            base = before[index].pieces if index < len(before) else None
            with self._storage.state_writer(self._number, f"0a-{index}", 0) as writer:
                rest, pieces = frozen.write_pieces(base, writer)
                assert rest is not None
                self.states.append(OperatorSubtaskState(writer.write(rest), None, pieces))
            handles = set(pieces.pieces.values())
            found += sum(each.length for each in handles)
            if base is not None:
                known += sum(each.length for each in handles & set(base.pieces.values()))
        return found - known, found

    def written(self) -> int:
        """All that a checkpoint writes: new pieces, and what each checkpoint has anew."""
        new, _ = self.take()
        rest = [each.keyed for each in self.states if each.keyed is not None]
        return new + sum(each.length for each in rest)

    def restart(self, parallelism: int) -> None:
        """From the last checkpoint, as another number of subtasks."""
        reader = self._storage.reader(f"{self._storage.job_dir}/chk-{self._number}")
        groups = range(MAX_PARALLELISM)
        saved = []
        for each in self.states:
            keyed = read_keyed(each, reader, MAX_PARALLELISM, groups)
            found = SavedState(keyed, chunks=read_chunks(each, reader, groups, ()))
            if each.pieces is not None and each.pieces.form == "rocksdb":
                # into what any backend takes back
                found = with_pieces(found, [each.pieces], reader, MAX_PARALLELISM, groups, {})
            saved.append(found)
        self._of.close()
        self._of.start(parallelism, saved)
        self.states = []
