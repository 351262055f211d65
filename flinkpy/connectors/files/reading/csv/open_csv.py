"""CSV files as bytes: the header, and behind it blocks of whole records."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import IO, cast

import pyarrow as pa

from flinkpy.connectors.files.paths import FileInfo, open_binary, refuse_other_kind
from flinkpy.connectors.files.reading.csv.csv_options import CsvOptions
from flinkpy.connectors.files.reading.csv.csv_values import CsvParser
from flinkpy.connectors.files.reading.record_ends import OpenRecord, RecordBlocks
from flinkpy.connectors.files.reading.text_files import FileSplit, LineBlocks

BLOCK_BYTES = 1 << 20  # less is parsed at a higher cost
SHOWN_BYTES = 1 << 20  # of the block that shows the types
LONGEST_RECORD = 1 << 28
_HEADER_BYTES = 64 << 10


@dataclass(frozen=True)
class Header:
    """The names of a file's columns (none: it has no records), and the byte of its UTF-8 that the
    records begin at."""

    names: Sequence[str]
    end: int


def read_header(file: FileInfo, options: CsvOptions) -> Header:
    """The header of this file. Raises ArrowInvalid for bytes that are no text in its encoding."""
    names: Sequence[str] = options.column_names or ()
    with closing(open_utf8(file, options.encoding)) as stream:
        place, rest = _behind_skipped(stream, file, options.skip_rows)
        if not options.header:
            return Header(names, place)
        for block in RecordBlocks(stream, options.ends, _HEADER_BYTES, LONGEST_RECORD, rest):
            start = 0
            for end in options.ends.all(block).tolist():
                record, start = block[start:end], end
                if record.strip(b"\r\n") and not options.is_comment(record):
                    if isinstance(block, OpenRecord):
                        raise pa.ArrowInvalid(
                            f"a quote in the line of the header is not closed: {record[:80]!r}"
                        )
                    return Header(
                        names
                        or [name or "" for name in CsvParser(options, (), None).texts(record)],
                        place + end,
                    )
            place += len(block)
    return Header(names, place)


def _behind_skipped(stream: IO[bytes], file: FileInfo, lines: int) -> tuple[int, bytes]:
    """The byte behind the byte order mark and so many lines, and what was read from there on.
    Raises ArrowInvalid if there are not so many."""
    read = stream.read(_HEADER_BYTES)
    refuse_other_kind(file.path, read[:16])
    place = len(codecs.BOM_UTF8) if read.startswith(codecs.BOM_UTF8) else 0
    for passed in range(lines):
        while (end := read.find(b"\n", place)) < 0:
            more = stream.read(_HEADER_BYTES)
            if not more:
                there = passed + (place < len(read))
                if there < lines:
                    raise pa.ArrowInvalid(
                        f"it has {there} lines, and skip_rows={lines} passes over more"
                    )
                return len(read), b""
            read += more
        place = end + 1
    return place, read[place:]


def blocks_behind(
    header: Header,
    file: FileInfo,
    options: CsvOptions,
    part: FileSplit | None = None,
    block_bytes: int | None = None,
) -> Generator[tuple[int, bytes], None, None]:
    """The records in blocks, each with its place in the file's UTF-8; of ``part`` those that begin
    in it."""
    size = BLOCK_BYTES if block_bytes is None else block_bytes
    if part is None:
        place = header.end
        with closing(open_utf8(file, options.encoding, place)) as stream:
            for block in RecordBlocks(stream, options.ends, size, LONGEST_RECORD):
                yield place, block
                place += len(block)
        return
    with closing(
        LineBlocks(replace(part, offset=header.end) if part.start <= header.end else part, size)
    ) as lines:
        while (found := lines.next()) is not None:
            yield found


def is_utf8(encoding: str) -> bool:
    """Whether text in this encoding is UTF-8 as it is."""
    return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig", "ascii")


def open_utf8(file: FileInfo, encoding: str, offset: int = 0) -> IO[bytes]:
    """The file's text in UTF-8, from a byte of it on."""
    return (
        open_binary(file, offset)
        if is_utf8(encoding)
        else cast("IO[bytes]", _Recoded(open_binary(file), encoding, offset))
    )


class _Recoded:
    """A stream of text in another encoding as UTF-8."""

    def __init__(self, stream: IO[bytes], encoding: str, offset: int) -> None:
        self._stream, self._decode = stream, codecs.getincrementaldecoder(encoding)().decode
        self._before, self._done = offset, False

    def read(self, size: int) -> bytes:
        """Some bytes, about ``size``; none at the end."""
        while not self._done:
            read = self._stream.read(max(size, 1))
            self._done = not read
            try:
                found = self._decode(read, final=self._done).encode()
            except UnicodeDecodeError as error:
                raise pa.ArrowInvalid(
                    f"{error.object[error.start : error.end]!r} is no {error.encoding} text; "
                    "name the file's encoding with "
                    "encoding="
                ) from None
            passed = min(self._before, len(found))
            self._before -= passed
            if passed < len(found):
                return found[passed:]
        return b""

    def close(self) -> None:
        self._stream.close()
