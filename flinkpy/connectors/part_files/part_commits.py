"""Making whole part files visible: a file gets its own name, and what it was made of is removed."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Sequence

from flinkpy.connectors.part_files.part_names import PartFile
from flinkpy.operators.sinks.sink_port import Committer

_LOG = logging.getLogger(__name__)


class PartCommitter(Committer):
    """Renames. A file that has its own name already was committed before."""

    def commit(self, committables: Sequence[PartFile]) -> None:
        for part in committables:
            try:
                os.replace(part.hidden, part.final)
            except FileNotFoundError:
                if not os.path.exists(part.final):  # committed, and taken away since? No reason to fail for ever
                    _LOG.warning("neither %s nor %s is there: the part was moved or removed", part.final, part.hidden)
            for source in part.sources:
                with contextlib.suppress(FileNotFoundError):
                    os.remove(source)


def sync(path: str) -> None:
    """Waits until the file is on the disk, as a checkpoint promises it will still be there."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
