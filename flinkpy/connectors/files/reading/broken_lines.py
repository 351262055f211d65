"""Lines of a text file that cannot be read: where they are and why, found in a block that was
refused as a whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any, Literal

import pyarrow as pa

from flinkpy.connectors.files.reading.record_ends import lines_in
from flinkpy.core.errors import ProgramError

# among the records that Arrow was given, counted from 1 or from 0
_PLACE = re.compile(r"Row #(\d+): |in row (\d+)")
_READ_BYTES = 1 << 20
_FEW = 500  # records, which are read faster than their half is found

OnError = Literal["fail", "null", "skip"]
# of a source: "divert" if its operator has a policy
OnBroken = Literal["fail", "null", "skip", "divert"]


@dataclass(frozen=True)
class BrokenLine:
    """A line that is no record of its file: the ``record`` of its dead letter. ``line`` counts from
    1; ``text`` is the whole line, or the lines of a quoted field, with \\\\x.. for bytes that are
    no text.

    >>> BrokenLine("sales.csv", 17, "Oslo,many", "'many' is no int64")
    BrokenLine(file='sales.csv', line=17, text='Oslo,many', why="'many' is no int64")
    """

    file: str
    line: int
    text: str
    why: str


@dataclass(frozen=True)
class Refused:
    """A record of a block that could not be read: its place and bytes, and the line of the block
    that it begins in."""

    line: int
    data: bytes
    error: Exception

    def broken(self, file: str, lines_before: int) -> BrokenLine:
        text = self.data.decode("utf-8", "backslashreplace").rstrip("\r\n")
        return BrokenLine(file, lines_before + self.line, text, _PLACE.sub("", str(self.error)))


def read_around(
    block: bytes, ends_of: Callable[[bytes], Any], read: Callable[[bytes], Any]
) -> Iterator[Any]:
    """What ``read`` makes of the block, or of its parts between the records that it refuses with an
    ArrowException; and a Refused for each of these, all in order. ``ends_of`` says where the
    records end."""
    try:
        yield read(block)
        return
    except pa.ArrowException as error:
        refused = error
    bounds = [0, *ends_of(block).tolist()]
    yield from _divided(block, bounds, 0, len(bounds) - 1, refused, read)


def read_first(
    block: bytes,
    ends_of: Callable[[bytes], Any],
    read: Callable[[bytes], Any],
    lines_before: Callable[[], int],
) -> Any:
    """What ``read`` makes of the block as a whole. If it refuses it, raises ArrowInvalid with the
    line of the file of the first record that does not go together with those before it."""
    try:
        return read(block)
    except pa.ArrowException as error:
        refused = error
    bounds = [0, *ends_of(block).tolist()]
    fine, broken = 0, len(bounds) - 1  # so many records can be read, and cannot
    while broken - fine > 1:
        middle = (fine + broken) // 2
        try:
            read(block[: bounds[middle]])
            fine = middle
        except pa.ArrowException as error:
            broken, refused = middle, error
    line = lines_before() + lines_in(block[: bounds[fine]]) + 1
    raise pa.ArrowInvalid(f"line {line}: {_PLACE.sub('', str(refused)).strip()}") from refused


def read_blocks(
    blocks: Iterator[tuple[int, bytes]],
    file: str,
    ends_of: Callable[[bytes], Any],
    read: Callable[[bytes], Any],
    mended: Callable[[bytes], Any],
    lines_before: Callable[[int], int],
    on_error: str,
) -> Iterator[Any]:
    """The record batches of blocks of records, and what becomes of the records that ``read``
    refuses: an ArrowInvalid with the line (``"fail"``), a batch of what ``mended`` makes of one
    (``"null"``), or a BrokenLine. ``lines_before`` counts the file's lines before a place; it is
    asked once, as a reader may begin anywhere."""
    line: int | None = None  # how many come before the block, once that matters
    for place, block in blocks:
        for found in read_around(block, ends_of, read):
            if not isinstance(found, Refused):
                yield from found.to_batches()
                continue
            line = lines_before(place) if line is None else line
            broken = found.broken(file, line)
            if on_error == "fail":
                raise pa.ArrowInvalid(f"line {broken.line}: {broken.why}")
            yield mended(found.data) if on_error == "null" else broken
        line = None if line is None else line + lines_in(block)


def lines_before(stream: IO[bytes], place: int) -> int:
    """How many lines end before this byte of the stream, which is closed then."""
    lines = 0
    with closing(stream):
        while place > 0 and (read := stream.read(min(place, _READ_BYTES))[:place]):
            lines += lines_in(read)
            place -= len(read)
    return lines


def _divided(
    block: bytes,
    bounds: list[int],
    first: int,
    last: int,
    refused: Exception,
    read: Callable[[bytes], Any],
) -> Iterator[Any]:
    """The records first to last, which were refused together."""
    if last - first == 1:
        yield Refused(
            lines_in(block[: bounds[first]]) + 1, block[bounds[first] : bounds[last]], refused
        )
        return
    for low, high in _parts(first, last, str(refused)):
        try:
            found = read(block[bounds[low] : bounds[high]])
        except pa.ArrowException as error:
            yield from _divided(block, bounds, low, high, error, read)
        else:
            yield found


def _parts(first: int, last: int, why: str) -> list[tuple[int, int]]:
    """Two halves; of a few records, the one that Arrow's message names, and those before and behind
    it."""
    named = _PLACE.search(why)
    if named is None or last - first > _FEW:
        middle = (first + last) // 2
        return [(first, middle), (middle, last)]
    at = min(first + (int(named[1]) - 1 if named[1] else int(named[2])), last - 1)
    return [(low, high) for low, high in ((first, at), (at, at + 1), (at + 1, last)) if low < high]


def when_read(on_error: OnBroken, diverts: bool) -> OnBroken:
    """What becomes of a broken line in an operator that diverts, or does not."""
    if diverts:
        return "divert"
    return "fail" if on_error == "divert" else on_error


def check_on_error(on_error: OnBroken, schema: pa.Schema | None = None) -> OnBroken:
    """Raises ProgramError for what is no such word, and for nulls in a schema that has none."""
    if on_error not in ("fail", "null", "skip", "divert"):
        raise ProgramError(
            'on_error= is "fail", "null" or "skip", or ErrorPolicy.divert(tag); this is '
            f"{on_error!r:.80}"
        )
    required = (
        [field.name for field in schema if not field.nullable]
        if on_error == "null" and isinstance(schema, pa.Schema)
        else []
    )
    if required:
        raise ProgramError(
            f'on_error="null" gives nulls, and the schema has column {required[0]!r} with '
            'nullable=False; choose "skip" or '
            "ErrorPolicy.divert(tag)"
        )
    return on_error
