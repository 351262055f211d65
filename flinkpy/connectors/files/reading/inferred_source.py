"""What sources of text files share, whose types are inferred.

One rule: the types are those that the beginnings of all files show together, or with ``infer_all``
their whole. They are as wide as a value that may follow is likely to need, if that changes none:
whole numbers beside fractions are floats, moments and times of day hold microseconds. A value
behind the beginnings that is not of its column's type is an error, never another value. So how a
file is cut into blocks, and lines into files, shows in no value."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo
from flinkpy.connectors.files.reading.column_source import SCHEMAS_AT_ONCE, ColumnFileSource
from flinkpy.connectors.files.reading.merged_schemas import merged_schema
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pyarrow as pa

# in what Arrow says of a value
_IS_OF_TYPE = re.compile("convert|conversion error|changed from|not a valid|parse string")
_LOOKED_AT, _AT_LEAST = 64 << 20, 64 << 10  # bytes of all beginnings, and of each


class InferredFileSource(ColumnFileSource):
    """A source of files without types of their own. ``_infer_all`` is set before this class's
    ``__init__`` runs."""

    _infer_all: bool

    def _shown_schema(self) -> pa.Schema:
        files = [file for file in self._files if file.size]
        with ThreadPoolExecutor(SCHEMAS_AT_ONCE) as threads:
            shown = list(chain.from_iterable(threads.map(self._shown_in, files)))
        if not shown:
            raise ProgramError(
                f"{self._files[0].path} is empty; its columns are not known, give schema="
            )
        self._check_names(shown)
        if (
            doubled := next(
                (schema for _, schema in shown if len(set(schema.names)) < len(schema)), None
            )
        ) is not None:
            return doubled  # which is refused, if the columns are wanted
        return merged_schema(
            ((file.path, schema) for file, schema in shown),
            ProgramError,
            self._wanted,
            self._common,
        )

    def _shown_in(self, file: FileInfo) -> list[tuple[FileInfo, pa.Schema]]:
        schemas = self._shown_schemas(file, max(_AT_LEAST, _LOOKED_AT // len(self._files)))
        with closing(schemas):
            return [
                (file, schema) for schema in (schemas if self._infer_all else islice(schemas, 1))
            ]

    def _first_schema(self, file: FileInfo) -> pa.Schema:
        for _, schema in self._shown_in(file):
            return schema
        raise ProgramError(f"{file.path} is empty; its columns are not known, give schema=")

    @abstractmethod
    def _shown_schemas(self, file: FileInfo, most_bytes: int) -> Generator[pa.Schema, None, None]:
        """What each block of the file shows; a block has at most about so many bytes. None, if the
        file has no records."""

    @abstractmethod
    def _common(self, one: pa.DataType, other: pa.DataType) -> Any:
        """The type of a column that two blocks show as these, of which neither takes the values of
        the other; None if there is none."""

    def _check_names(self, shown: list[tuple[FileInfo, pa.Schema]]) -> None:
        """Raises ProgramError if these files are not of one kind."""

    def _advice(self, file: FileInfo, why: str) -> str:
        if not self._is_shown or "schema=" in why:
            return ""
        more = "" if self._infer_all else " or infer_all=True"
        return (
            f"; the types are those of the first lines, give schema={more}"
            if _IS_OF_TYPE.search(why)
            else ""
        )
