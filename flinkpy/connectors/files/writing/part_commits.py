"""Making whole part files visible: a file gets its own name, and what it was made of is removed."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.connectors.files.writing.part_names import PartFile
from flinkpy.connectors.files.writing.part_storage import PartStorage
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.operators.sinks.sink_port import Committer

_LOG = engine_logger(__name__)


class PartCommitter(Committer):
    """Renames. A file that has its own name already was committed before. ``synced_below``: the
    sink's folder, if names must outlive a crash of the machine."""

    def __init__(self, storage: PartStorage, synced_below: str | None = None) -> None:
        self._storage, self._synced_below = storage, synced_below

    def commit(self, committables: Sequence[PartFile]) -> None:
        for part in committables:
            # committed, and taken away since? No reason to fail for ever
            if not self._storage.publish(part.hidden, part.final):
                _LOG.warning(
                    "neither %s nor %s is there: the part was moved or removed",
                    part.final,
                    part.hidden,
                )
            for source in part.sources:
                self._storage.remove(source)
        if self._synced_below is not None:
            self._storage.sync_names([part.final for part in committables], self._synced_below)
