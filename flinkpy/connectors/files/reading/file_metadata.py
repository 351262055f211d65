"""What a source of files knows of the file of each row: its path, name, size and time."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo
from flinkpy.core.files.file_systems import file_system, split_url

if TYPE_CHECKING:
    import pyarrow as pa

PATH, NAME, SIZE, MODIFICATION_TIME = (
    "file.path",
    "file.name",
    "file.size",
    "file.modification-time",
)


def metadata_schema(columns: Sequence[tuple[str, str]]) -> pa.Schema:
    """The columns, each of a name and what it has of the file."""
    import pyarrow as pa

    types = {
        PATH: pa.string(),
        NAME: pa.string(),
        SIZE: pa.int64(),
        MODIFICATION_TIME: pa.timestamp("ms", "UTC"),
    }
    return pa.schema([pa.field(name, types[key], nullable=False) for name, key in columns])


def with_metadata(
    items: Iterator[Any], columns: Sequence[tuple[str, str]], file: FileInfo
) -> Iterator[Any]:
    """The items that are read of a file; batches of rows have these columns behind their own."""
    import pyarrow as pa

    added = metadata_schema(columns)
    values = [pa.scalar(_of_file(file, key), field.type) for field, (_, key) in zip(added, columns)]
    for item in items:
        if not isinstance(item, pa.RecordBatch):
            yield item
            continue
        arrays = [pa.repeat(value, item.num_rows) for value in values]
        schema = pa.schema([*item.schema, *added])
        yield pa.RecordBatch.from_arrays([*item.columns, *arrays], schema=schema)


def _of_file(file: FileInfo, key: str) -> object:
    if key == PATH:
        return file.path
    if key == NAME:
        return file.path.rpartition("/")[2]
    if key == SIZE:
        return file.size
    return int(_modified_s(file) * 1000)


def _modified_s(file: FileInfo) -> float:
    if not file.store:
        return os.path.getmtime(file.path)
    system, root = file_system(file.store)
    _, within = split_url(file.path)
    info = system.get_file_info(root + within)
    return info.mtime.timestamp() if info.mtime is not None else 0.0
