"""Lines of text files. Plain files are cut into byte ranges, so that all readers can share a large
one; compressed files are read whole.

A line belongs to the range that contains its first byte. So a reader whose range does not start at
0 looks at the byte before it: it starts after the first line end at or after that byte, and reads
past the end of its range to finish its last line. Every line is read exactly once, wherever the
cuts fall."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any, Literal

from flinkpy.connectors.files.paths import (
    FileInfo,
    PathArgument,
    find_files,
    open_binary,
    refuse_other_kind,
)
from flinkpy.connectors.source_api.enumerators import SplitQueue
from flinkpy.connectors.source_api.readers import SequentialReader, SplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    from flinkpy.connectors.files.reading.broken_lines import BrokenLine

OnBrokenText = Literal["fail", "skip", "replace"]
DEFAULT_SPLIT_BYTES = 16 << 20
_LEAST_SPLIT_BYTES = 64 << 10
BLOCK_BYTES = 256 << 10


@dataclass(frozen=True)
class FileSplit:
    """The lines of a file that begin in [start, end). Reading resumes at byte ``offset``, after
    ``skip`` lines from there."""

    split_id: str
    file: FileInfo
    start: int
    end: int | None  # None: the end of the file
    offset: int | None = None  # None: not begun yet
    skip: int = 0


def cut_file(file: FileInfo, split_bytes: int) -> Iterator[FileSplit]:
    """Splits of about ``split_bytes``; a single split for a file that cannot be entered in the
    middle."""
    if file.compression is not None or file.size <= split_bytes:
        yield FileSplit(f"{file.path}:0", file, 0, None)
        return
    pieces = -(-file.size // split_bytes)
    bounds = [file.size * index // pieces for index in range(pieces + 1)]
    for low, high in pairwise(bounds):
        yield FileSplit(f"{file.path}:{low}", file, low, high if high < file.size else None)


def cut_for_readers(file: FileInfo, split_bytes: int, parallelism: int) -> Iterator[FileSplit]:
    """Splits of about ``split_bytes``, or of less, so that each reader has some; but no tiny
    ones."""
    return cut_file(file, max(_LEAST_SPLIT_BYTES, min(split_bytes, -(-file.size // parallelism))))


class LineBlocks:
    """The bytes of a split as blocks of whole lines, each with its offset in the file."""

    def __init__(self, split: FileSplit, block_bytes: int = BLOCK_BYTES) -> None:
        self._end, self._block_bytes = split.end, block_bytes
        self._rest = b""
        self._done = False
        if split.offset is not None or split.start == 0:
            self.offset = split.offset or 0  # of ``_rest`` in the file
            self._stream: IO[bytes] = open_binary(split.file, self.offset)
        else:
            self._stream = open_binary(split.file, split.start - 1)
            self.offset = split.start - 1
            self._skip_partial_line()

    def _skip_partial_line(self) -> None:
        while not self._done:
            block = self._read()
            line_end = block.find(b"\n")
            if line_end >= 0:
                self.offset += line_end + 1
                self._rest = block[line_end + 1 :]
                return
            self.offset += len(block)

    def _read(self) -> bytes:
        # Inside a long line the amount doubles, so that the line is not searched again and again.
        block = self._stream.read(max(self._block_bytes, len(self._rest)))
        if not block:
            self._done = True
        return bytes(block)

    def next(self) -> tuple[int, bytes] | None:
        """Offset and bytes of the next whole lines; None after the last line that begins in the
        split."""
        while True:
            if self._end is not None and self.offset >= self._end:
                return None
            cut = self._last_line_end()
            if cut or (self._done and self._rest):
                offset, block = self.offset, self._rest[:cut] if cut else self._rest
                self._rest = self._rest[len(block) :]
                self.offset += len(block)
                return offset, block
            if self._done:
                return None
            self._rest += self._read()

    def _last_line_end(self) -> int:
        """How many bytes of the rest belong to whole lines that begin before the split's end."""
        if self._end is None or self.offset + len(self._rest) <= self._end:
            return self._rest.rfind(b"\n") + 1
        # the split's last byte: the line that contains it is the split's last
        last = self._end - self.offset - 1
        return self._rest.find(b"\n", last) + 1 if last >= 0 else 0

    def close(self) -> None:
        self._stream.close()


def fail_at(line: BrokenLine) -> None:
    """Raises ProgramError for a line that is not in its file's charset."""
    raise ProgramError(
        f"{line.file}, line {line.line}: {line.why}; name the encoding with charset_name=, or "
        "leave such lines out with on_error="
    )


class LineReader(SplitReader[FileSplit]):
    """Lines as text, without their ends."""

    def __init__(
        self,
        split: FileSplit,
        charset: str,
        block_bytes: int = BLOCK_BYTES,
        *,
        refuse: Callable[[BrokenLine], None] = fail_at,
        replaces: bool = False,
    ) -> None:
        self._split = split
        self._charset = charset
        self._refuse = refuse
        self._errors = "replace" if replaces else "strict"
        # only a file begins with a byte order mark
        self._behind_mark = "utf-8" if codecs.lookup(charset).name == "utf-8-sig" else charset
        self._blocks = LineBlocks(split, block_bytes)
        self._lines: list[Any] = []  # texts, and a BrokenLine for each line that is none
        self._has_broken = False
        self._offset = split.offset
        self._next = 0
        self._last = 0
        skip = split.skip
        while skip and self._load():  # blocks may be cut differently from the first time
            self._next = min(skip, len(self._lines))
            skip -= self._next

    def _load(self) -> bool:
        found = self._blocks.next()
        if found is None:
            return False
        self._offset, block = found
        if not self._offset and self._split.file.compression is None:
            refuse_other_kind(self._split.file.path, block[:16])
        charset = self._behind_mark if self._offset else self._charset
        try:
            text = block.decode(charset, self._errors)
        except UnicodeDecodeError:
            self._lines = self._decoded(block, charset)
            self._next = 0
            self._has_broken = True
            return True
        lines = text.split("\n")
        if text.endswith("\n"):
            lines.pop()
        self._lines = (
            [line[:-1] if line.endswith("\r") else line for line in lines]
            if "\r" in text
            else lines
        )
        self._next, self._has_broken = 0, False
        return True

    def _decoded(self, block: bytes, charset: str) -> list[Any]:
        """The lines of a block, and a BrokenLine for each that is not in the charset."""
        from flinkpy.connectors.files.reading.broken_lines import BrokenLine, lines_before

        found: list[Any] = []
        before: int | None = None
        for number, line in enumerate(block.removesuffix(b"\n").split(b"\n")):
            line = line.removesuffix(b"\r")
            try:
                found.append(line.decode(charset if not number else self._behind_mark))
            except UnicodeDecodeError as error:
                if before is None:
                    before = lines_before(open_binary(self._split.file), self._offset or 0)
                why = f"byte {error.start} of the line is not {self._charset}: {error.reason}"
                found.append(
                    BrokenLine(
                        self._split.file.path,
                        before + number + 1,
                        line.decode("ascii", "backslashreplace"),
                        why,
                    )
                )
        return found

    def next_batch(self, limit: int) -> Batch | None:
        if self._next >= len(self._lines) and not self._load():
            self._offset = self._blocks.offset
            self._lines = []
            self._next = 0
            return None
        start = self._last = self._next
        self._next = min(start + limit, len(self._lines))
        lines = self._lines[start : self._next]
        if not self._has_broken:
            return RowBatch(lines)
        for line in lines:
            if not isinstance(line, str):
                self._refuse(line)
        return RowBatch([line for line in lines if isinstance(line, str)])

    def snapshot(self) -> FileSplit:
        return replace(self._split, offset=self._offset, skip=self._next)

    def position(self) -> str:
        return f"{self._split.file.path}, line {self._last + 1} behind byte {self._offset or 0}"

    def close(self) -> None:
        self._blocks.close()


def check_charset(charset: str) -> None:
    """Raises ProgramError for a charset in which files cannot be cut at line ends."""
    try:
        line_end = "\n".encode(charset)
    except (LookupError, TypeError):
        raise ProgramError(f"{charset!r} is no character set Python knows") from None
    # utf-8-sig reads files that begin with a byte order mark
    if line_end.removeprefix(codecs.BOM_UTF8) != b"\n":
        raise ProgramError(
            f"charset {charset} does not end lines with a byte 0x0A, as cutting files needs; "
            "recode to utf-8"
        )


class TextFileSource(Source[FileSplit]):
    """Reads the lines of text files, as ``str`` without line ends.

    ``paths`` is a file, a directory, a glob, a URI, or a list of these; ``.gz``, ``.bz2``, ``.zst``
    and ``.lz4`` files are decompressed. Lines are in order within a split of ``split_bytes`` (None:
    files are not cut); at parallelism 1 the splits are in order too. Raises ProgramError if there
    is no such file.

    ``on_error`` says what happens to a line with bytes that are not in the charset: it fails the
    job (``"fail"``), it is left out (``"skip"``), or it has U+FFFD in their place (``"replace"``),
    as in Flink.

    >>> env.from_source(
    ...     TextFileSource("logs/*.txt"), WatermarkStrategy.no_watermarks(), "logs"
    ... )  # doctest: +SKIP
    """

    has_timestamps = False
    takes_error_policy = True

    def __init__(
        self,
        paths: PathArgument,
        charset: str = "utf-8",
        split_bytes: int | None = DEFAULT_SPLIT_BYTES,
        *,
        on_error: OnBrokenText = "fail",
    ) -> None:
        check_charset(charset)
        if on_error not in ("fail", "skip", "replace"):
            raise ProgramError(
                'on_error= of lines of text is "fail", "skip" or "replace", or an '
                f"ErrorPolicy; this is {on_error!r:.80}"
            )
        self._on_error = on_error
        self._files = find_files(paths)
        self._charset, self._split_bytes = charset, split_bytes

    @property
    def boundedness(self) -> Boundedness:
        return Boundedness.BOUNDED

    def create_enumerator(
        self, context: SplitEnumeratorContext[FileSplit], checkpoint: Any = None
    ) -> SplitEnumerator[FileSplit]:
        return SplitQueue(context, self._discover, checkpoint)

    def _discover(self, parallelism: int) -> Iterator[FileSplit]:
        for file in self._files:
            yield from (
                cut_file(file, file.size)
                if self._split_bytes is None
                else cut_for_readers(file, self._split_bytes, parallelism)
            )

    def create_reader(self, context: ReaderContext) -> SourceReader[FileSplit]:
        return line_reader(context, self._charset, self._on_error)

    def __repr__(self) -> str:
        return (
            f"TextFileSource({len(self._files)} files, "
            f"{sum(file.size for file in self._files)} bytes)"
        )


def line_reader(
    context: ReaderContext, charset: str, on_error: OnBrokenText = "fail"
) -> SourceReader[FileSplit]:
    """The reader of a source of lines."""

    def leave_out(line: BrokenLine) -> None:
        context.leave_out(line, line.why)

    refuse = leave_out if context.diverts or on_error == "skip" else fail_at
    replaces = on_error == "replace" and not context.diverts
    return SequentialReader(
        context, lambda split: LineReader(split, charset, refuse=refuse, replaces=replaces)
    )
