"""Which checkpoints use which shared file (Flink's SharedStateRegistry): a file is deleted when the
last of them is gone.

A checkpoint uses the files that it was acknowledged with, and from its beginning those of the
checkpoint that it builds on: a task may name any of them in its acknowledgement, which can come
after that checkpoint was replaced by a newer one. So whatever order things happen in, a file that a
task may still refer to is there. The name of a file is never used twice, so a file that was deleted
is never missed under another meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from flinkpy.graph.checkpoints import CompletedCheckpoint
from flinkpy.scheduler.protocol import DiscardSharedFiles


class SharedStateRegistry:
    """The shared files of one job's checkpoints, by name.

    >>> registry = SharedStateRegistry()
    >>> registry.use(1, ["1-a", "1-b"])
    >>> registry.build_on(2, 1)
    >>> registry.release(1)
    []
    >>> registry.settle(2, ["1-b", "2-c"])
    [DiscardSharedFiles(files=('1-a',), location=None)]
    """

    def __init__(self) -> None:
        self._used: defaultdict[int, set[str]] = defaultdict(set)  # by each checkpoint
        self._users: defaultdict[str, set[int]] = defaultdict(set)  # of each file
        # files that were another job's: where the checkpoint is that was claimed
        self._claimed: dict[str, str] = {}
        self._spared: set[str] = set()  # files that are another job's again

    @property
    def files(self) -> frozenset[str]:
        """All that are in use."""
        return frozenset(self._users)

    def claim(self, checkpoint: CompletedCheckpoint) -> None:
        """The job starts from this one, and owns it from now on."""
        files = checkpoint.shared_files()
        if checkpoint.location is not None:
            self._claimed.update(dict.fromkeys(files, checkpoint.location))
        self.use(checkpoint.checkpoint_id, files)

    def build_on(self, checkpoint_id: int, base_id: int) -> None:
        """A checkpoint begins that may use whatever that one, which is complete, does."""
        self.use(checkpoint_id, self._used.get(base_id, ()))

    def use(self, checkpoint_id: int, files: Iterable[str]) -> None:
        """These belong to the checkpoint, until it is released."""
        for file in files:
            self._used[checkpoint_id].add(file)
            self._users[file].add(checkpoint_id)

    def settle(self, checkpoint_id: int, files: Iterable[str]) -> list[DiscardSharedFiles]:
        """The checkpoint is complete, with these files and no others. Returns what is to be deleted
        now."""
        return self._leave(checkpoint_id, self._used[checkpoint_id] - set(files))

    def release(self, checkpoint_id: int) -> list[DiscardSharedFiles]:
        """The checkpoint is gone, or will never be. Returns what is to be deleted now."""
        return self._leave(checkpoint_id, self._used.pop(checkpoint_id, set()))

    def disown(self, checkpoint_id: int) -> None:
        """The checkpoint stays, and is not the job's any more. A task may be late to name its
        files: they are never deleted."""
        self._spared |= self._used.get(checkpoint_id, set())
        self.release(checkpoint_id)

    def _leave(self, checkpoint_id: int, files: set[str]) -> list[DiscardSharedFiles]:
        unused: defaultdict[str | None, list[str]] = defaultdict(list)
        for file in sorted(files):
            users = self._users[file]
            users.discard(checkpoint_id)
            if not users:
                del self._users[file]
                location = self._claimed.pop(file, None)
                if file not in self._spared:
                    unused[location].append(file)
        if checkpoint_id in self._used:
            self._used[checkpoint_id] -= files
        return [DiscardSharedFiles(tuple(names), location) for location, names in unused.items()]

    def __repr__(self) -> str:
        return f"<SharedStateRegistry of {len(self._users)} files>"
