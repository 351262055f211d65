"""The wire format, without I/O: a header of fixed size, followed by a payload.

A frame is encoded as a list of buffers for a scatter-gather send; the payload's parts are never
joined. The decoder provides the buffer for the next read: a large payload is read from the socket
straight into its own buffer, small ones many at a time into a buffer that is reused.

Header, little-endian: magic, kind, flags, parts (of the payload, see
``flinkpy.network.encoding.payloads``), channel, sequence (numbers a producer's elements on a
channel, from 0), segments (the cost of the payload), backlog (segments that wait behind it), length
of the payload."""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import NamedTuple

from flinkpy.core.errors import NetworkProtocolError

MAGIC = 0xF1
_HEADER = struct.Struct("<BBBBIQIII")
HEADER_SIZE = _HEADER.size
_pack = _HEADER.pack
_unpack_from = _HEADER.unpack_from
_new = tuple.__new__  # NamedTuple's own __new__ is a Python call


class FrameKind(IntEnum):
    """Elements, BACKLOG and FAILED go from producer to consumer; the others go from consumer to
    producer."""

    ROWS = 1
    COLUMNS = 2
    SCHEMA = 3
    WATERMARK = 4
    WATERMARK_STATUS = 5
    LATENCY_MARKER = 6
    CHECKPOINT_BARRIER = 7
    END_OF_DATA = 8
    END_OF_PARTITION = 9
    BACKLOG = 20  # the producer waits for credit with ``backlog`` segments
    FAILED = 21  # the partition does not exist, or was released; the payload says why
    # the consumer asks for a subpartition; ``segments`` are the channel's exclusive segments
    REQUEST = 30
    CREDIT = 31  # ``segments`` more may be sent
    CANCEL = 32  # the consumer wants nothing more from the channel


LARGE_BYTES = 32 << 10  # from this size on, a payload is read straight into its own buffer
LAST_ELEMENT_KIND = int(FrameKind.END_OF_PARTITION)
_KINDS = frozenset(int(kind) for kind in FrameKind)

FLAG_TIMESTAMPS = 1  # the payload's last part holds int64 timestamps
FLAG_OWN_BUFFER = 2  # decoded values refer to the payload, which must not be overwritten
FLAG_STREAM = 4  # the payload is a whole Arrow stream with its own schema
FLAG_KINDS = 8  # the payload's last part, behind timestamps, holds the rows' kinds as int8


class Frame(NamedTuple):
    """A decoded frame. Unless FLAG_OWN_BUFFER is set, ``payload`` is valid only while it is
    dispatched."""

    kind: int
    flags: int
    parts: int
    channel: int
    sequence: int
    segments: int
    backlog: int
    payload: memoryview


# The header of a frame with a payload of that length: (kind, flags, parts, channel, sequence,
# segments, backlog, length) -> bytes.
# a partial, to save a Python call
encode_header: Callable[[int, int, int, int, int, int, int, int], bytes] = partial(_pack, MAGIC)


def payload_length(data: bytes) -> int:
    """The length of the payload behind a trusted header."""
    length: int = _unpack_from(data)[-1]
    return length


def control_frame(
    kind: int, channel: int, *, segments: int = 0, backlog: int = 0, payload: bytes = b""
) -> bytes:
    """A small frame that has no sequence number."""
    return _pack(MAGIC, kind, 0, 0, channel, 0, segments, backlog, len(payload)) + payload


class FrameDecoder:
    """Cuts a byte stream into frames. Read into ``buffer``, then call ``feed`` with the number of
    bytes.

    Raises NetworkProtocolError for a wrong magic, an unknown kind, or a length above ``max_frame``.
    """

    def __init__(self, max_frame: int, scratch_size: int = 256 << 10) -> None:
        self._max_frame = max_frame
        self._scratch = memoryview(bytearray(max(scratch_size, 4096)))
        # the bounds of what was read into the scratch buffer and not decoded yet
        self._start = self._end = 0
        # of the frame whose payload is read into its own buffer
        self._header: tuple[int, ...] | None = None
        self.own: memoryview | None = None  # that buffer; ``buffer`` is the rest of it
        self._own_filled = 0
        self._reused = memoryview(b"")
        self._expect_large = False
        self.buffer = self._scratch

    @property
    def mid_frame(self) -> bool:
        """Whether the stream would end inside a frame if it ended now."""
        return self.own is not None or self._start != self._end

    def feed(self, count: int, dispatch: Callable[[Frame], bool]) -> None:
        """Takes ``count`` more bytes in ``buffer``, and calls ``dispatch`` with each complete frame
        until it returns False."""
        if self.own is not None:
            self._own_filled += count
            if self._own_filled < len(self.own):
                self._make_room()
                return
            payload, self.own = self.own, None
            assert self._header is not None
            _, kind, flags, parts, channel, sequence, segments, backlog, _ = self._header
            if not dispatch(
                _new(Frame, (kind, flags, parts, channel, sequence, segments, backlog, payload))
            ):
                return
        else:
            self._end += count
        scratch = self._scratch
        while self._end - self._start >= HEADER_SIZE:
            magic, kind, flags, parts, channel, sequence, segments, backlog, length = header = (
                _unpack_from(scratch, self._start)
            )
            if magic != MAGIC or kind not in _KINDS or length > self._max_frame:
                raise self._refusal(header)
            begin = self._start + HEADER_SIZE
            end = begin + length
            self._header = header
            if end > self._end:
                if end - self._start > len(scratch) or flags & FLAG_OWN_BUFFER:
                    self._start_own(begin, length)
                break
            self._start = end
            payload = scratch[begin:end]
            keeps = bool(flags & FLAG_OWN_BUFFER)
            self._expect_large = keeps and length >= LARGE_BYTES
            if not dispatch(
                _new(
                    Frame,
                    (
                        kind,
                        flags,
                        parts,
                        channel,
                        sequence,
                        segments,
                        backlog,
                        own_copy(payload) if keeps else payload,
                    ),
                )
            ):
                return
        self._make_room()

    def _refusal(self, header: tuple[int, ...]) -> NetworkProtocolError:
        if header[0] != MAGIC or header[1] not in _KINDS:
            return NetworkProtocolError(
                "not a frame: it begins with "
                f"{bytes(self._scratch[self._start : self._start + 8]).hex()}"
            )
        return NetworkProtocolError(
            f"a frame announces {header[8]} bytes, more than "
            f"taskmanager.network.max-frame-size ({self._max_frame})"
        )

    def _start_own(self, begin: int, length: int) -> None:
        """Continues reading the payload into its own buffer: a new one if decoded values will refer
        to it, else one that is reused."""
        assert self._header is not None
        if self._header[2] & FLAG_OWN_BUFFER:
            self.own = _fresh(length)
        else:
            if len(self._reused) < length:
                self._reused = memoryview(bytearray(length))
            self.own = self._reused[:length]
        self._own_filled = self._end - begin
        self.own[: self._own_filled] = self._scratch[begin : self._end]
        self._start = self._end = 0
        self._expect_large = True

    def _make_room(self) -> None:
        """Sets ``buffer`` for the next bytes; if the rest of a frame would not fit behind what is
        left, moves that to the front."""
        scratch, left = self._scratch, self._end - self._start
        if self.own is not None:
            self.buffer = self.own[self._own_filled :]
        elif not left:
            self._start = self._end = 0
            # if the last payload was large, a small read leaves little of the next one to copy
            self.buffer = scratch[:2048] if self._expect_large else scratch
        else:
            if self._start and len(scratch) - self._end < len(scratch) // 2:
                scratch[:left] = bytes(scratch[self._start : self._end])
                self._start, self._end = 0, left
            self.buffer = scratch[self._end :]


def _fresh(length: int) -> memoryview:
    """A buffer of Arrow's allocator: aligned, and recycled by it without going back to the
    system."""
    import pyarrow as pa

    return memoryview(pa.allocate_buffer(length)).cast("B")


def stored_frame(data: bytes | memoryview) -> Frame:
    """A frame that was stored: a trusted header, which is not checked, and the payload behind
    it."""
    _, kind, flags, parts, channel, sequence, segments, backlog, _ = _unpack_from(data)
    payload = memoryview(data)[HEADER_SIZE:]
    return Frame(
        kind,
        flags,
        parts,
        channel,
        sequence,
        segments,
        backlog,
        own_copy(payload) if flags & FLAG_OWN_BUFFER else payload,
    )


def own_copy(payload: memoryview) -> memoryview:
    """The payload in a buffer of its own, aligned for Arrow."""
    copy = _fresh(len(payload))
    copy[:] = payload
    return copy
