"""JSON documents in a folder that several sessions change.

A document is a file a version: ``orders.0000000003.json``, and the highest is the present one. A
store of files creates a file only if it is absent. So of two sessions that change the same version
one succeeds, and the other is told. A document that was removed leaves an empty version behind, so
that its numbers go on. Of stores that look before they write, as Arrow's do for objects, two
sessions can both believe that they were first, if they write within the same moment."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from flinkpy.sql.sql_errors import CatalogError
from flinkpy.state.checkpoints.file_store import FileStore
from flinkpy.state.checkpoints.locations import join

Document = Mapping[str, Any]

_FILE = re.compile(r"(.+)\.([0-9]{10})\.json")


class VersionedDocuments:
    """The documents of one folder, by name.

    >>> from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore
    >>> tables = VersionedDocuments(SimulatedFileStore(), "tables")
    >>> tables.write("orders", {"columns": 3}, after=0)
    >>> tables.read("orders")
    (1, {'columns': 3})
    """

    def __init__(self, files: FileStore, folder: str) -> None:
        self._files, self._folder = files, folder

    def names(self) -> list[str]:
        """Those of all documents, sorted."""
        return sorted(name for name in self._versions() if self.read(name)[1] is not None)

    def read(self, name: str) -> tuple[int, Document | None]:
        """The present version and what it says; None if there is none, or none any more."""
        while True:
            version = self._versions().get(name, 0)
            if version == 0:
                return 0, None
            try:
                text = self._files.read(self._file(name, version))
            except FileNotFoundError:
                continue  # another session has written the next version meanwhile
            document: Document | None = json.loads(text)
            return version, document

    def write(self, name: str, document: Document | None, *, after: int) -> None:
        """The version behind ``after``; None removes the document. Raises CatalogError if another
        session was faster."""
        text = json.dumps(document, indent=2, ensure_ascii=False)
        try:
            self._files.write_atomically(self._file(name, after + 1), [text.encode()])
        except FileExistsError:
            raise CatalogError(
                f"another session has changed {name!r} in the meantime: run the statement again"
            ) from None
        if after:
            self._files.delete(self._file(name, after))

    def remove_all(self) -> None:
        """The folder with all that is in it."""
        self._files.delete_dir(self._folder)

    def _versions(self) -> dict[str, int]:
        versions: dict[str, int] = {}
        for found in map(_FILE.fullmatch, self._files.list(self._folder)):
            if found is not None:
                name = unquote(found[1])
                versions[name] = max(versions.get(name, 0), int(found[2]))
        return versions

    def _file(self, name: str, version: int) -> str:
        quoted = quote(name, safe=" ").replace(".", "%2E")
        return join(self._folder, f"{quoted}.{version:010}.json")
