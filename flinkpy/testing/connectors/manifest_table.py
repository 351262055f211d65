"""A table in a folder, whose rows are seen when a manifest names their file: in small what Iceberg
and Delta Lake have. Its sink commits with a global committer, one manifest for each checkpoint."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import (
    GlobalCommitter,
    Sink,
    SinkWriter,
    SupportsGlobalCommitter,
)


@dataclass(frozen=True)
class Manifest:
    """The files that one commit added to the table."""

    checkpoint_id: int | None  # None: of a job without checkpoints
    files: tuple[str, ...]


class ManifestTable:
    """The table in ``folder``: ``data`` has a file of JSON for each writer and checkpoint,
    ``manifests`` one for each commit."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.data, self.manifests = Path(folder) / "data", Path(folder) / "manifests"
        self._refusal = Path(folder) / "refuses"

    def create(self) -> None:
        """Makes the folders, if they are not there."""
        for each in (self.data, self.manifests):
            each.mkdir(parents=True, exist_ok=True)

    def add_file(self, rows: Sequence[Any]) -> str:
        """Writes a file of a new name, which nobody sees before it is committed; gives its name."""
        name = f"{uuid.uuid4().hex}.json"
        (self.data / name).write_text(json.dumps(rows, default=list))
        return name

    def commit(self, manifest: Manifest) -> None:
        """Adds the files to the table, all or none of them; does nothing if they were added. A file
        is of one commit only, so its first file tells a commit from all others."""
        if self._refusal.exists():
            raise OSError(self._refusal.read_text())
        path = self.manifests / f"{min(manifest.files)}.manifest"
        if path.exists():
            return
        unseen = self.manifests / f".{uuid.uuid4().hex}"
        unseen.write_text(json.dumps([manifest.checkpoint_id, *manifest.files]))
        os.replace(unseen, path)

    def refuse_commits(self, why: str) -> None:
        """Commits raise an OSError from now on."""
        self._refusal.write_text(why)

    def allow_commits(self) -> None:
        """They go well again."""
        self._refusal.unlink(missing_ok=True)

    def commits(self) -> list[Manifest]:
        """All manifests, in no order."""
        found = []
        for path in self.manifests.glob("*.manifest"):
            checkpoint_id, *files = json.loads(path.read_text())
            found.append(Manifest(checkpoint_id, tuple(files)))
        return found

    def rows(self) -> list[Any]:
        """The rows that are seen."""
        return [
            row
            for manifest in self.commits()
            for file in manifest.files
            for row in json.loads((self.data / file).read_text())
        ]


class ManifestTableSink(Sink, SupportsGlobalCommitter):
    """Writes to the :class:`ManifestTable` in ``folder``. Records are what JSON can
    hold; rows become lists."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _FileWriter(ManifestTable(self._folder))

    def create_global_committer(self, context: OperatorContext) -> GlobalCommitter:
        return _ManifestCommitter(ManifestTable(self._folder))

    def __repr__(self) -> str:
        return f"ManifestTableSink({self._folder!r})"


class _FileWriter(SinkWriter):
    def __init__(self, table: ManifestTable) -> None:
        self._table = table
        self._table.create()
        self._rows: list[Any] = []

    def write_batch(self, batch: Batch) -> None:
        self._rows += rows_of(batch)

    def prepare_commit(self) -> Sequence[str]:
        rows, self._rows = self._rows, []
        return [self._table.add_file(rows)] if rows else []


class _ManifestCommitter(GlobalCommitter):
    def __init__(self, table: ManifestTable) -> None:
        self._table = table

    def commit(self, committables: Sequence[str], checkpoint_id: int | None) -> None:
        self._table.commit(Manifest(checkpoint_id, tuple(sorted(committables))))
