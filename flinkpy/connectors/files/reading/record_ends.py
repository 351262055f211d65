"""Where the records of a CSV file end: at the line ends outside of quotes.

As in Arrow's reader, a quote opens a quoted field only at the field's beginning; two quotes inside
are one; what comes after the closing quote belongs to the field. So a quote in the middle of a
field has no meaning. All positions of quotes are found at once; only a block with quotes in the
middle of fields is gone through quote by quote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import IO, Any

import numpy as np
import pyarrow as pa

_STARTS = (0x0A, 0x0D)  # a field begins behind these, and behind the delimiter


@dataclass(frozen=True)
class RecordEnds:
    """Finds them in blocks of bytes that begin with a record. ``quote`` None: quotes have no
    meaning. A quote, a delimiter or a line end behind ``escape`` is text."""

    delimiter: bytes
    quote: bytes | None
    escape: bytes | None = None

    def _plain(self, block: bytes) -> bytes:
        """The block with other text of the same length in place of what is escaped."""
        return (
            block
            if self.escape is None or self.escape not in block
            else self._escaped.sub(b"xx", block)
        )

    @cached_property
    def _escaped(self) -> re.Pattern[bytes]:
        return re.compile(re.escape(self.escape or b"") + b".", re.DOTALL)

    def last(self, block: bytes) -> int:
        """How many bytes of the block are whole records."""
        block = self._plain(block)
        line_end = b"\n"
        end = block.rfind(line_end) + 1
        # line ends of old Macs; the last byte may be the first half of a line end of two
        if not end:
            line_end = b"\r"
            end = block.rfind(line_end, 0, len(block) - 1) + 1
        if self.quote is None or block.find(self.quote, 0, end) < 0:
            return end
        quotes = self._quotes(block)
        while end:
            before = int(np.searchsorted(quotes, end))
            if before % 2 == 0:
                return end
            # before the quoted field that is open there
            end = block.rfind(line_end, 0, int(quotes[before - 1])) + 1
        return 0

    def all(self, block: bytes) -> Any:
        """Where each whole record of the block ends, as an array; the last one also if no line end
        follows."""
        block = self._plain(block)
        data = np.frombuffer(block, np.uint8)
        is_end = data == _STARTS[0]
        if b"\r" in block:
            is_end[:-1] |= (data[:-1] == _STARTS[1]) & (data[1:] != _STARTS[0])
            is_end[-1:] |= data[-1:] == _STARTS[1]
        ends = np.flatnonzero(is_end) + 1
        if self.quote is not None and self.quote in block:
            ends = ends[np.searchsorted(self._quotes(block), ends) % 2 == 0]
        return ends if len(ends) and ends[-1] == len(block) else np.append(ends, len(block))

    def never_closed(self, block: bytes) -> int | None:
        """Where the block's last quote is, if it opens a field and none closes it."""
        block = self._plain(block)
        if self.quote is None or self.quote not in block:
            return None
        quotes = self._quotes(block)
        return int(quotes[-1]) if len(quotes) % 2 else None

    def escaped_by_backslash(self, block: bytes) -> int | None:
        """Where a quote closes a field though a backslash comes before it and text behind it: that
        of a file with escapes."""
        if (
            self.quote is None
            or self.escape is not None
            or b"\\" not in block
            or not self._suspicious.search(block)
        ):
            return None
        data = np.frombuffer(block, np.uint8)
        closing = self._quotes(block)[1::2]
        closing = closing[(closing > 0) & (closing + 1 < len(data))]
        follows = data[closing + 1]
        ends = (*_STARTS, ord(self.delimiter), ord(self.quote))
        found = closing[(data[closing - 1] == ord("\\")) & ~np.isin(follows, ends)]
        return int(found[0]) if len(found) else None

    @cached_property
    def _suspicious(self) -> re.Pattern[bytes]:
        quote = re.escape(self.quote or b"")
        return re.compile(rb"\\%b[^%b%b\r\n]" % (quote, quote, re.escape(self.delimiter)))

    def are_within_lines(self, block: bytes) -> bool:
        """Whether every quoted field ends on the line that it begins on, and no line end is
        escaped."""
        plain = self._plain(block)
        if plain is not block and plain.count(b"\n") < block.count(b"\n"):
            return False
        block = plain
        if self.quote is None or self.quote not in block or self._plain_record.fullmatch(block):
            return True
        return not (
            np.searchsorted(self._quotes(block), replace(self, quote=None).all(block)) % 2
        ).any()

    @cached_property
    def _plain_record(self) -> re.Pattern[bytes]:
        """One line whose quotes, if there are any, are around whole fields. It is recognised much
        faster than quotes are searched."""
        delimiter, quote = re.escape(self.delimiter), re.escape(self.quote or b"")
        field = b"(?:%b[^%b\r\n]*%b|[^%b%b\r\n]*)" % (quote, quote, quote, delimiter, quote)
        return re.compile(b"%b(?:%b%b)*\r?\n?" % (field, delimiter, field))

    def _quotes(self, block: bytes) -> Any:
        """The positions of quotes that open and close, in turn. Two quotes inside of a field close
        it and open it again."""
        data = np.frombuffer(block, np.uint8)
        quotes = np.flatnonzero(data == ord(self.quote or b"\0"))
        opening = quotes[::2]
        # of the block's first byte that is the last one, which is looked at next
        before = data[opening - 1]
        starts = (
            (opening == 0)
            | (before == ord(self.delimiter))
            | (before == _STARTS[0])
            | (before == _STARTS[1])
        )
        starts[1:] |= opening[1:] == quotes[1::2][: len(opening) - 1] + 1
        return quotes if starts.all() else self._one_by_one(data, quotes)

    def _one_by_one(self, data: pa.RecordBatch, quotes: Any) -> Any:
        starts = {ord(self.delimiter), *_STARTS}
        found: list[int] = []
        is_open, closed = False, -2
        for at in quotes.tolist():
            if is_open:
                is_open, closed = False, at
            elif at == 0 or at == closed + 1 or int(data[at - 1]) in starts:
                is_open = True
            else:
                continue  # in the middle of a field
            found.append(at)
        return np.array(found, np.int64)


def lines_in(data: bytes) -> int:
    """How many lines end in the bytes."""
    return data.count(b"\n") or data.count(b"\r")


def line_feeds_in(data: bytes) -> int:
    """How many there are, counted several times faster than ``bytes.count`` does."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _STARTS[0]))


class OpenRecord(bytes):
    """A record with a quote that is not closed up to the end of the stream. It ends with the line
    of that quote."""


class RecordBlocks:
    """A stream of bytes in blocks of whole records. ``begun`` was read from it before. A quote that
    is never closed breaks its own line, an OpenRecord, and no other."""

    def __init__(
        self,
        stream: IO[bytes],
        ends: RecordEnds,
        block_bytes: int,
        longest: int,
        begun: bytes = b"",
    ) -> None:
        self._stream = stream
        self._ends = ends
        self._block_bytes = block_bytes
        self._longest = longest
        self._begun = begun

    def __iter__(self) -> Iterator[bytes]:
        rest = self._begun
        # twice as much within a long record
        while read := self._stream.read(max(self._block_bytes - len(rest), len(rest))):
            # what most blocks are, with one copy less
            if self._ends.quote is self._ends.escape is None and (end := read.rfind(b"\n") + 1):
                block, rest = b"".join((rest, memoryview(read)[:end])), read[end:]
                yield block
                continue
            block = rest + read if rest else bytes(read)
            end = self._ends.last(block)
            if end:
                yield block[:end] if end < len(block) else block
            rest = block[end:]
            if len(rest) > self._longest:
                raise pa.ArrowInvalid(
                    f"a record has more than {self._longest >> 20} MB: perhaps a quote is not "
                    f"closed. It begins with {rest[:40]!r}"
                )
        while (opened := self._ends.never_closed(rest)) is not None:
            begin, end = self._ends.last(rest), rest.find(b"\n", opened) + 1 or len(rest)
            if begin:
                yield rest[:begin]
            yield OpenRecord(rest[begin:end])
            rest = rest[end:]
        if rest:
            yield rest
