"""Files with one JSON object per line as column batches, cut at line ends."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from flinkpy.connectors.files.paths import FileInfo, PathArgument, open_binary, refuse_other_kind
from flinkpy.connectors.files.reading.broken_lines import (
    OnBroken,
    Refused,
    check_on_error,
    lines_before,
    read_around,
    read_blocks,
    read_first,
    when_read,
)
from flinkpy.connectors.files.reading.column_source import Item, RowsSplit
from flinkpy.connectors.files.reading.inferred_source import InferredFileSource
from flinkpy.connectors.files.reading.json_lines import (
    first_misfit,
    mended,
    parse_lines,
    refuse_rounded_numbers,
    shown_schema,
    told,
    type_for_both,
    with_plain_floats,
)
from flinkpy.connectors.files.reading.merged_schemas import merged_schema
from flinkpy.connectors.files.reading.record_ends import RecordEnds
from flinkpy.connectors.files.reading.text_files import (
    DEFAULT_SPLIT_BYTES,
    FileSplit,
    LineBlocks,
    cut_for_readers,
)
from flinkpy.connectors.memory.arrow_tables import DEFAULT_BATCH_ROWS
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.errors import ProgramError
from flinkpy.formats.text_columns import changed, in_microseconds

if TYPE_CHECKING:
    import pyarrow as pa

_BLOCK_BYTES = 1 << 20
_ENDS = RecordEnds(b",", None)  # JSON has no line ends within texts


class JsonLinesSource(InferredFileSource):
    """Reads files with one JSON object per line. ``schema`` gives the columns; fields that it does
    not have are an error, unless ``ignore_extra_fields``. Without it, the columns are those that
    the beginnings of all files show; with ``infer_all``, those that the whole files show, which are
    read once for it.

    ``on_error`` says what happens to a line that is no such object, or has a value that is not of
    its column's type: it fails the job (``"fail"``), its wrong values are null (``"null"``), or it
    is left out (``"skip"``)."""

    takes_error_policy = True

    def __init__(
        self,
        paths: PathArgument,
        columns: list[str] | None = None,
        schema: pa.Schema | None = None,
        batch_rows: int = DEFAULT_BATCH_ROWS,
        split_bytes: int = DEFAULT_SPLIT_BYTES,
        *,
        infer_all: bool = False,
        ignore_extra_fields: bool = False,
        on_error: OnBroken = "fail",
        watch_interval_ms: int | None = None,
    ) -> None:
        if not isinstance(split_bytes, int) or split_bytes < 1:
            raise ProgramError(
                f"split_bytes= takes a number of bytes from 1 on, this is {split_bytes!r:.80}"
            )
        self._split_bytes = split_bytes
        self._infer_all = infer_all
        self._ignores_extra = ignore_extra_fields
        self._on_error = check_on_error(on_error, schema)
        if not ignore_extra_fields:
            _refuse_maps(schema)
        super().__init__(paths, columns, schema, batch_rows, watch_interval_ms)

    def _shown_schema(self) -> pa.Schema:
        return with_plain_floats(super()._shown_schema())

    def _shown_schemas(self, file: FileInfo, most_bytes: int) -> Generator[pa.Schema, None, None]:
        import pyarrow as pa

        try:
            for place, block in _blocks(FileSplit("", file, 0, None), most_bytes):
                if self._on_error == "fail":
                    yield read_first(
                        block,
                        _ENDS.all,
                        _shown_or_told,
                        lambda: lines_before(open_binary(file), place),  # noqa: B023  (called at once)
                    )
                else:
                    parts = read_around(block, _ENDS.all, shown_schema)
                    shown = ((file.path, part) for part in parts if not isinstance(part, Refused))
                    yield merged_schema(shown, ProgramError, otherwise=self._common)
        except (pa.ArrowException, OSError) as error:
            advice = "; give schema= with one type for it" if "changed from" in str(error) else ""
            raise ProgramError(f"cannot read {file.path} as JsonLines: {error}{advice}") from error

    def _common(self, one: pa.DataType, other: pa.DataType) -> Any:
        return type_for_both(one, other) or (None if self._on_error == "fail" else one)

    def _advice(self, file: FileInfo, why: str) -> str:
        if "is not in the schema" not in why:
            return super()._advice(file, why)
        if not self._is_shown:
            return "; with ignore_extra_fields=True such fields are left out"
        return "; the schema is that of the first lines, give schema=" + (
            "" if self._infer_all else " or infer_all=True"
        )

    def _splits_of(self, file: FileInfo, parallelism: int) -> Iterator[RowsSplit]:
        for part in cut_for_readers(file, self._split_bytes, parallelism):
            yield RowsSplit(part.split_id, file, lines=part)

    def _read_or_told(self, block: bytes) -> Any:
        """What the block holds. If it is one line, the error names the column."""
        import pyarrow as pa

        try:
            return self._read(block)
        except pa.ArrowInvalid as error:
            is_line = block.count(b"\n", 0, len(block) - 1) == 0
            if is_line and (why := told(block, str(error))) != str(error):
                raise pa.ArrowInvalid(why) from error
            is_one = is_line and not any(
                sign in str(error) for sign in ("olumn", "is not in the schema")
            )
            name = first_misfit(block, self._read) if is_one else None
            if name is None:
                raise
            raise pa.ArrowInvalid(f"column {name!r}: {error}") from error

    def _read(self, block: bytes) -> Any:
        import pyarrow as pa

        from flinkpy.columns.values.conversion import conformed

        if any(map(_has_map, self._in_files)):
            return self._read_maps(block)
        known = self._full_schema
        if self._ignores_extra:  # maps that are not asked for are fields as others that are not
            known = pa.schema([field for field in known if not _has_map(field)])
        read = parse_lines(block, known, ignore_extra_fields=self._ignores_extra)
        if self._is_shown:
            refuse_rounded_numbers(block, read.select(self._in_files.names))
        if not len(self._in_files):  # only the number of rows is asked for
            return read
        in_micros = changed(self._in_files, in_microseconds)
        batches = [conformed(batch, in_micros) for batch in read.to_batches()]
        if not in_micros.equals(self._in_files):
            batches = [conformed(batch, self._in_files) for batch in batches]
        return pa.Table.from_batches(batches, self._in_files)

    def _read_maps(self, block: bytes) -> Any:
        """Lines with maps, which Arrow's reader does not know, as messages."""
        import pyarrow as pa

        from flinkpy.formats.json.json_columns import JsonColumnarDecoder

        lines = [line for line in block.splitlines() if line.strip()]
        decoded = JsonColumnarDecoder(self._in_files).decode_well_formed(lines)
        if decoded.malformed:
            raise pa.ArrowInvalid(decoded.malformed[0].why)
        return pa.Table.from_batches([decoded.batch])

    def _items_of(self, split: RowsSplit, context: ReaderContext) -> Iterator[Item]:
        if split.lines is None:
            return
        file = split.file

        def read_mended(record: bytes) -> Any:
            return mended(record, self._full_schema, self._read)

        yield from read_blocks(
            _blocks(split.lines),
            file.path,
            _ENDS.all,
            self._read_or_told,
            read_mended,
            lambda place: lines_before(open_binary(file), place),
            when_read(self._on_error, context.diverts),
        )


def _shown_or_told(block: bytes) -> pa.Schema:
    import pyarrow as pa

    try:
        return shown_schema(block)
    except pa.ArrowInvalid as error:
        lines = block.splitlines()
        raise pa.ArrowInvalid(told(lines[-1] if lines else b"", str(error))) from error


def _has_map(field: pa.Field) -> bool:
    return "map<" in str(field.type)


def _refuse_maps(schema: pa.Schema) -> None:
    import pyarrow as pa

    for field in schema if isinstance(schema, pa.Schema) else ():
        if _has_map(field):
            raise ProgramError(
                f"column {field.name!r} is a {field.type}, and files of JSON lines are read "
                "without maps: declare a pa.struct of the "
                "keys that are wanted, with ignore_extra_fields=True; or "
                "read the lines with read_text_file() and map them with a "
                "JsonRowDeserializationSchema, whose Types.MAP() takes any keys"
            )


def _blocks(split: FileSplit, most_bytes: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Offset and bytes of each block, without a byte order mark."""
    with closing(
        LineBlocks(split, _BLOCK_BYTES if most_bytes is None else min(_BLOCK_BYTES, most_bytes))
    ) as blocks:
        while (found := blocks.next()) is not None:
            offset, block = found
            if not offset:
                refuse_other_kind(split.file.path, block[:16])
            yield offset, block.removeprefix(codecs.BOM_UTF8) if not offset else block
