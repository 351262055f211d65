"""The partitions of a table of files: folders such as ``city=Oslo/year=2024`` below its path."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flinkpy.sql.sql_errors import ValidationError

if TYPE_CHECKING:
    from flinkpy.connectors.files.writing.part_storage import PartStorage


class TablePartitions:
    """Those of one table."""

    def __init__(self, path: str, keys: Sequence[str]) -> None:
        if any(letter in path for letter in "*?["):
            raise ValidationError(f"the path {path!r} is a pattern: its partitions have no place")
        self._path, self._keys = path, keys

    def names(self) -> list[str]:
        """All of them, sorted: ``city=Oslo/year=2024``."""
        storage, top = self._storage()
        found = [top]
        for key in self._keys:
            inside = [each for folder in found for each in storage.folders(folder)]
            found = [each for each in inside if os.path.basename(each).startswith(f"{key}=")]
        return sorted(each[len(top) :].strip("/") for each in found)

    def add(self, values: Mapping[str, object]) -> bool:
        """Makes the folder, where there are folders without files. Whether it is new."""
        name = self._name(values)
        storage, top = self._storage()
        is_new = name not in self.names()
        storage.make_folder(f"{top}/{name}")
        return is_new

    def drop(self, values: Mapping[str, object]) -> bool:
        """Removes the folder with its files. Whether there was one."""
        name = self._name(values)
        storage, top = self._storage()
        is_there = name in self.names()
        storage.remove_folder(f"{top}/{name}")
        return is_there

    def _name(self, values: Mapping[str, object]) -> str:
        from flinkpy.connectors.files.partition_folders import folder_of

        return folder_of({key: values[key] for key in self._keys})

    def _storage(self) -> tuple[PartStorage, str]:
        from flinkpy.connectors.files.writing.part_storage import split_location, storage_of

        store, top = split_location(self._path)
        return storage_of(store), top
