"""A database as pieces of a checkpoint: its files, and a table of contents that says which state is
where in it.

A file of entries (``….sst``) never changes, and within one database, and the one that is restored
from its files, a name is given to one file only. So a file that the checkpoint has which this one
builds on is not written again. The other files are small, and belong to one checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from flinkpy.core.errors import CheckpointDamagedError, EngineError
from flinkpy.graph.checkpoints import KeyedPieces, StateHandle
from flinkpy.state.checkpoints.own_folder import OwnFolder
from flinkpy.state.checkpoints.state_writer import FileOnDisk, StateWriter
from flinkpy.state.snapshots.keyed_snapshots import StateMeta
from flinkpy.state.snapshots.saved_state import FrozenInPieces, FrozenKeyedState

# the form of these pieces, and the name of the one that is no file of the database
FORM = "rocksdb"
CONTENTS = "contents"
_NOT_NEEDED = ("OPTIONS-", "LOG")  # whoever opens the database brings its own options
_VERSION = 1


@dataclass(frozen=True)
class SavedTable:
    """One state: its number, which its places begin with, and what its entries go on with."""

    number: int
    meta: StateMeta
    next_number: int = 0
    forms_differ: bool = False


@dataclass(frozen=True)
class Contents:
    """What the files hold: states by name, for these key groups, and the classes that their pickles
    name."""

    max_parallelism: int
    groups: range
    tables: Mapping[str, SavedTable]
    definitions: Mapping[str, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        import msgpack

        packed: bytes = msgpack.packb(
            {
                "version": _VERSION,
                "max_parallelism": self.max_parallelism,
                "groups": [self.groups.start, self.groups.stop],
                "tables": {name: asdict(table) for name, table in self.tables.items()},
                "definitions": dict(self.definitions),
            }
        )
        return packed

    @staticmethod
    def from_bytes(data: bytes) -> Contents:
        """CheckpointDamagedError if the bytes are not what ``to_bytes`` made."""
        import msgpack

        try:
            fields = msgpack.unpackb(data)
            if fields["version"] != _VERSION:
                raise ValueError(f"version {fields['version']}, and only {_VERSION} can be read")
            tables = {name: _table(each) for name, each in fields["tables"].items()}
            return Contents(
                fields["max_parallelism"], range(*fields["groups"]), tables, fields["definitions"]
            )
        except (
            ValueError,
            LookupError,
            TypeError,
            AttributeError,
            msgpack.UnpackException,
        ) as error:
            raise CheckpointDamagedError(
                "RocksDB state", "a table of contents", f"{type(error).__name__}: {error}"
            ) from error


def _table(fields: Mapping[str, Any]) -> SavedTable:
    return SavedTable(
        fields["number"], StateMeta(**fields["meta"]), fields["next_number"], fields["forms_differ"]
    )


class FrozenDatabase(FrozenInPieces):
    """A database as it was at a barrier: links to its files in a folder of their own, which is
    removed when they are written. ``regions`` is what the operator holds in other forms. ``whole``
    makes one snapshot of both."""

    def __init__(
        self,
        folder: OwnFolder,
        contents: Contents,
        regions: FrozenKeyedState,
        whole: Callable[[OwnFolder, Contents, bytes], bytes],
    ) -> None:
        self._folder = folder
        self._contents = contents
        self._regions = regions
        self._whole = whole

    def write(self) -> bytes:
        return self._whole(self._folder, self._contents, self._regions.write())

    def chunks(self) -> list[bytes]:
        return [self.write()]

    def write_pieces(
        self, base: KeyedPieces | None, writer: StateWriter
    ) -> tuple[bytes | None, KeyedPieces]:
        known = base.pieces if base is not None and base.form == FORM else {}
        try:
            files = sorted(Path(self._folder.database).iterdir())
            pieces = {
                file.name: _written(file, known.get(file.name), writer)
                for file in files
                if not file.name.startswith(_NOT_NEEDED)
            }
        finally:
            self._folder.remove()
        pieces[CONTENTS] = writer.write(self._contents.to_bytes())
        return self._regions.write(), KeyedPieces(FORM, pieces)


def _written(file: Path, known: StateHandle | None, writer: StateWriter) -> StateHandle:
    if file.suffix != ".sst":
        return writer.write(FileOnDisk(str(file)))
    if known is None:
        (handle,) = writer.share([FileOnDisk(str(file))])
        return handle
    if known.length != os.path.getsize(file):
        raise EngineError(
            f"{file.name} of the checkpoint before has {known.length} bytes, and the "
            "database's file of this name has others"
        )
    return known
