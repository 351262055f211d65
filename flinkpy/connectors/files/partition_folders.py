"""Folders such as ``city=Oslo`` in the paths of files: columns with one value per file, as Hive,
Spark and Arrow write and read them.

Only folders below the folder that the program names count; in a pattern, those after the first part
with a wildcard. Values are text, unless all are integers or all are dates;
``__HIVE_DEFAULT_PARTITION__`` is null."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from flinkpy.connectors.files.paths import FileInfo, PathArgument, fixed_part
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import shown, split_url

if TYPE_CHECKING:
    import pyarrow as pa

NOTHING = "__HIVE_DEFAULT_PARTITION__"


class PartitionFolders:
    """The columns from the folder names of these files; none if there are no files yet. ``given``
    may say their types. Raises ProgramError if the files' folders have different names.

    >>> PartitionFolders(
    ...     "out", [FileInfo(os.path.abspath("out/city=Oslo/year=2024/part.parquet"), 1)]
    ... ).schema.names
    ['city', 'year']
    """

    def __init__(
        self, paths: PathArgument, files: Sequence[FileInfo], given: pa.Schema | None = None
    ) -> None:
        import pyarrow as pa

        self._roots = [
            _root(os.path.expanduser(path))
            for path in ([paths] if isinstance(paths, (str, Path)) else paths)
        ]
        self._first = files[0].path if files else ""
        self._names = list(self._texts(self._first)) if files else []
        texts = [self._checked(file.path) for file in files]
        readers = {name: _reader([each[name] for each in texts]) for name in self._names}
        self._read = {name: read for name, (_, read) in readers.items()}
        self._kinds = {name: kind for name, (kind, _) in readers.items()}
        self.schema: pa.Schema = pa.schema(
            [
                given.field(name)
                if given is not None and name in given.names
                else pa.field(name, kind)
                for name, kind in self._kinds.items()
            ]
        )

    def _texts(self, path: str) -> dict[str, str | None]:
        return named_folders(_below(path, self._roots)) if self._first else {}

    def _checked(self, path: str) -> dict[str, str | None]:
        texts = self._texts(path)
        if list(texts) != self._names:
            raise ProgramError(
                f"{self._first} lies in folders of {_listed(self._names)}, {path} in folders "
                f"of {_listed(texts)}; files of one source "
                "lie in folders of the same names"
            )
        return texts

    def scalars(self, path: str) -> dict[str, Any]:
        """What the folders of this file say, as Arrow's scalars. Raises ArrowInvalid for a text
        that is not of its column's type."""
        import pyarrow as pa

        found = {}
        for name, text in self._checked(path).items():
            kind = self.schema.field(name).type
            if kind.equals(self._kinds[name]):
                try:
                    found[name] = pa.scalar(None if text is None else self._read[name](text), kind)
                except (ValueError, OverflowError) as error:
                    raise pa.ArrowInvalid(
                        f"the folder {name}={text} is no {kind}, as those of the first files "
                        "are; give schema="
                    ) from error
            else:
                found[name] = pa.scalar(text, pa.string()).cast(kind)
        return found

    def columns(self, path: str, rows: int) -> dict[str, Any]:
        """The columns for ``rows`` rows of this file."""
        import pyarrow as pa

        return {name: pa.repeat(value, rows) for name, value in self.scalars(path).items()}


def folder_of(fields: dict[str, Any]) -> str:
    """The folder for a record with these values. Raises ProgramError for bytes and nested values,
    which no name can show.

    >>> folder_of({"city": "Oslo/Fornebu", "year": None, "open": True})
    'city=Oslo%2FFornebu/year=__HIVE_DEFAULT_PARTITION__/open=true'
    """
    texts = {name: _text_of(name, value) for name, value in fields.items()}
    return "/".join(f"{_escaped(name)}={text}" for name, text in texts.items())


def _escaped(text: str) -> str:
    """The text as a part of a folder's name that readers neither pass over nor take for null."""
    found = quote(text, safe=" ")
    return f"%{ord(text[0]):02X}{found[1:]}" if found.startswith(".") or found == NOTHING else found


def _text_of(name: str, value: object) -> str:
    if value is None or value == "":
        return NOTHING
    if isinstance(value, (bytes, bytearray, list, tuple, dict)):
        raise ProgramError(
            f"partitions by {name!r}: {value!r:.80} cannot be the name of a folder; make it a "
            "number, text or a date"
        )
    return _escaped(str(value).lower() if isinstance(value, bool) else str(value))


def _root(path: str) -> str:
    """The folder that the program names; for a pattern, the part before the first wildcard."""
    if "://" in path:
        store, within = split_url(path)
        return shown(store) + fixed_part(within)
    path = os.path.abspath(path)
    if os.path.exists(path):
        return path if os.path.isdir(path) else os.path.dirname(path)
    return fixed_part(path)


def _below(path: str, roots: list[str]) -> list[str]:
    """The folders between the root and the file."""
    inside = [root for root in roots if path.startswith(root.rstrip("/") + "/")]
    return path[len(max(inside, key=len)) :].strip("/").split("/")[:-1] if inside else []


def named_folders(folders: Sequence[str]) -> dict[str, str | None]:
    """What these folders say: names and texts, None for null.

    >>> named_folders(["city=Oslo%2FFornebu", "other"])
    {'city': 'Oslo/Fornebu'}
    """
    pairs = [folder.partition("=") for folder in folders]
    return {
        unquote(name): None if text == NOTHING else unquote(text)
        for name, equals, text in pairs
        if name and equals
    }


def _listed(texts: Iterable[str]) -> str:
    return ", ".join(f"{name}=…" for name in texts) or "no such names"


def _reader(texts: Sequence[str | None]) -> tuple[Any, Callable[[str], Any]]:
    """The type that fits all these texts, and the function that reads a value. A number with
    leading zeros makes the column text, to keep the zeros."""
    import pyarrow as pa

    given = {text for text in texts if text is not None}
    if given and all(re.fullmatch(r"0|-?[1-9][0-9]{0,17}", text) for text in given):
        return (
            pa.int32() if all(-(1 << 31) <= int(text) < 1 << 31 for text in given) else pa.int64()
        ), int
    if given and all(re.fullmatch(r"\d{4}-\d\d-\d\d", text) and _is_date(text) for text in given):
        return pa.date32(), datetime.date.fromisoformat
    return pa.string(), str


def _is_date(text: str) -> bool:
    try:
        return bool(datetime.date.fromisoformat(text))
    except ValueError:
        return False
