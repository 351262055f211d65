"""Encodes elements into frames and decodes them. Each channel has its own encoder and decoder,
which remember the last schema.

A payload has parts, each aligned to 64 bytes, after a table of their lengths. Rows: a pickle
(protocol 5), its out-of-band buffers, timestamps. Columns: an Arrow record-batch message, whose
schema was sent before in its own frame, then timestamps, then the rows' kinds; batches with
dictionaries travel as a whole Arrow stream. Timestamps are int64, kinds int8, control elements a
few bytes. Channel state has the same frames: what a flag stands for was not there when it is not
set.

Rows are always pickled: pickle keeps every type exactly, tuples included, and its C reader makes 14
million small tuples a second, msgpack's 10.7. Scalars and tuples of them are pickled without the
memo, because writing the memo costs two to seven times as much as writing the values; only values
that refer to themselves need it. Classes that exist only by value (those of the user's
``__main__``) travel with the first batch that has an instance (``flinkpy.core.program.by_value``).
Other values that pickle refuses go through cloudpickle, and so do all later batches of their
channel."""

from __future__ import annotations

import io
import pickle
import struct
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkpy.core.elements import (
    CheckpointBarrier,
    CheckpointOptions,
    ColumnBatch,
    ControlElement,
    Element,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    SavepointFormatType,
    SnapshotType,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import NetworkProtocolError, ProgramError
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.core.program.program_pickler import dumps_any
from flinkpy.network.encoding.frames import (
    FLAG_KINDS,
    FLAG_OWN_BUFFER,
    FLAG_STREAM,
    FLAG_TIMESTAMPS,
    Frame,
    FrameKind,
)

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

ALIGNMENT = 64
OUT_OF_BAND_BYTES = 16 << 10  # smaller buffers are cheaper inside the pickle
MAX_PARTS = 255
PLAIN_CHECK_EVERY = 64
FEW = 32  # records; for so few the memo costs less than a separate pickler
_SCALARS = frozenset({int, str, float, bool, bytes, type(None)})
_PADDING = bytes(ALIGNMENT)
_NO_BYTES = memoryview(b"")
_ROWS = int(FrameKind.ROWS)
_LATENCY = struct.Struct("<qI")
_BARRIER = struct.Struct("<qqBqqB?")  # and the target's UTF-8 behind it
_NEVER = -1  # for None
_INT64 = struct.Struct("<q")
_PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)


class Encoded(NamedTuple):
    """A frame's payload and the header fields that describe it."""

    kind: int
    flags: int
    parts: int
    buffers: list[Any]
    length: int


class ElementEncoder:
    """Encodes the elements of one channel. A column batch with a new schema becomes two frames."""

    def __init__(self) -> None:
        self._by_value: StreamPickler | None = None
        self._special = False
        self._plain = False
        self._until_plain_check = 0  # batches until the records are checked again
        self._columns: _ColumnEncoder | None = None

    def encode(self, element: Element) -> list[Encoded]:
        """The frames for the element. Raises ProgramError if a record cannot be pickled."""
        if type(element) is RowBatch:
            pickled = self._pickle_plain(element.values)
            # Most batches: without a table of parts and a NamedTuple call
            if pickled is not None and element.timestamps is None:
                return [tuple.__new__(Encoded, (_ROWS, 0, 1, [pickled], len(pickled)))]
            return [self._encode_rows(element, pickled)]
        if type(element) is ColumnBatch:
            return self._encode_columns(element)
        return [encode_control(element)]  # type: ignore[arg-type]

    def _encode_rows(self, batch: RowBatch, pickled: bytes | None) -> Encoded:
        kept_out: list[Any] = []
        if pickled is None:
            pickled = self._pickle(batch.values, kept_out)
        if batch.timestamps is None and not kept_out:
            return Encoded(_ROWS, 0, 1, [pickled], len(pickled))
        flags = FLAG_OWN_BUFFER if kept_out else 0
        parts = [pickled, *kept_out]
        if batch.timestamps is not None:
            flags |= FLAG_TIMESTAMPS
            parts.append(memoryview(array("q", batch.timestamps)).cast("B"))
        return _with_table(FrameKind.ROWS, flags, [[part] for part in parts])

    def _pickle_plain(self, values: list[Any]) -> bytes | None:
        """Pickles scalars and tuples of them without the memo; None if the records are of another
        kind.

        The first and last record of every 64th batch decide. That affects only speed, because
        either form can carry any value."""
        if not self._until_plain_check:
            self._until_plain_check = PLAIN_CHECK_EVERY
            self._plain = _plain(values[0]) and _plain(values[-1])
        self._until_plain_check -= 1
        if self._plain and self._by_value is None:
            try:
                return (
                    _pickle_without_memo(values) if len(values) > FEW else pickle.dumps(values, 5)
                )
            except (
                ValueError,
                *_PICKLE_TROUBLE,
            ):  # a cycle, or other values after the first records
                self._plain = False
        return None

    def _pickle(self, values: list[Any], kept_out: list[Any]) -> bytes:
        def keep_out(buffer: pickle.PickleBuffer) -> bool:
            try:
                raw = buffer.raw()
            except BufferError:  # not contiguous
                return True
            if raw.nbytes < OUT_OF_BAND_BYTES or len(kept_out) >= MAX_PARTS - 2:
                return True
            kept_out.append(raw)
            return False

        if self._by_value is None:
            try:
                return pickle.dumps(values, 5, buffer_callback=keep_out)
            except _PICKLE_TROUBLE:
                self._by_value = StreamPickler()
                kept_out.clear()
        if not self._special:
            try:
                return self._by_value.dumps(values, keep_out)
            except _PICKLE_TROUBLE:
                self._special = True
                kept_out.clear()
        try:
            return dumps_any(values)
        except Exception as error:
            raise ProgramError(
                f"records cannot be sent to another process: {error}; emit plain values, "
                "tuples, rows or picklable objects"
            ) from error

    def _encode_columns(self, batch: ColumnBatch) -> list[Encoded]:
        if self._columns is None:
            self._columns = _ColumnEncoder()
        first, flags, message = self._columns.encode(batch.data)
        flags |= FLAG_OWN_BUFFER
        encoded = [first] if first is not None else []
        parts = [message]
        if batch.timestamps is not None:
            flags |= FLAG_TIMESTAMPS
            parts.append([_bytes_of(batch.timestamps, "<i8")])
        if batch.kinds is not None:
            flags |= FLAG_KINDS
            parts.append([_bytes_of(batch.kinds, "i1")])
        if len(parts) == 1:
            encoded.append(Encoded(FrameKind.COLUMNS, flags, 1, message, _length(message)))
        else:
            encoded.append(_with_table(FrameKind.COLUMNS, flags, parts))
        return encoded


def _bytes_of(array: npt.NDArray[Any], dtype: str) -> memoryview:
    import numpy as np

    return np.ascontiguousarray(array, dtype=dtype).data.cast("B") if len(array) else _NO_BYTES


def _pickle_without_memo(values: list[Any]) -> bytes:
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.fast = True
    pickler.dump(values)
    return file.getvalue()


def _plain(value: Any, depth: int = 3) -> bool:
    kind = type(value)
    return kind in _SCALARS or (
        kind is tuple and depth > 0 and all(_plain(item, depth - 1) for item in value)
    )


class _Chunks:
    """A file for Arrow that keeps the buffers written, without copying them."""

    closed = False

    def __init__(self) -> None:
        self.taken: list[Any] = []

    def write(self, data: Any) -> int:
        self.taken.append(data)
        return len(data)

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def flush(self) -> None: ...

    def close(self) -> None: ...

    def take(self) -> list[Any]:
        taken, self.taken = self.taken, []
        return taken


class _ColumnEncoder:
    """An Arrow stream writer whose record-batch messages are taken one by one; the schema is sent
    in its own frame."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None
        self._has_dictionaries = False
        self._chunks = _Chunks()
        self._writer: Any = None

    def encode(self, data: pa.RecordBatch) -> tuple[Encoded | None, int, list[Any]]:
        """(schema frame or None, flags, the message's buffers)."""
        import pyarrow as pa

        schema = data.schema
        new = self._schema is None or not schema.equals(self._schema, check_metadata=True)
        if new:
            self._schema = schema
            self._has_dictionaries = any(_has_dictionary(field.type) for field in schema)
            self._chunks, self._writer = _Chunks(), None
        if self._has_dictionaries:
            with pa.ipc.new_stream(self._chunks, schema) as stream:
                stream.write_batch(data)
            return None, FLAG_STREAM, self._chunks.take()
        first = None
        if new:
            self._writer = pa.ipc.new_stream(self._chunks, schema)
            # Arrow writes the schema with the first batch; both are discarded
            self._writer.write_batch(data.slice(0, 0))
            self._chunks.take()
            described = schema.serialize()
            first = Encoded(FrameKind.SCHEMA, FLAG_OWN_BUFFER, 1, [described], described.size)
        self._writer.write_batch(data)
        return first, 0, self._chunks.take()


def _has_dictionary(kind: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return True
    if isinstance(kind, pa.BaseExtensionType):
        return _has_dictionary(kind.storage_type)
    return any(_has_dictionary(kind.field(i).type) for i in range(kind.num_fields))


def encode_control(element: ControlElement) -> Encoded:
    """A control element in a few bytes."""
    kind, payload = _control_payload(element)
    return Encoded(kind, 0, 1, [payload] if payload else [], len(payload))


def _control_payload(element: ControlElement) -> tuple[FrameKind, bytes]:
    if isinstance(element, Watermark):
        return FrameKind.WATERMARK, _INT64.pack(element.timestamp)
    if isinstance(element, WatermarkStatus):
        return FrameKind.WATERMARK_STATUS, bytes([element.idle])
    if isinstance(element, CheckpointBarrier):
        return FrameKind.CHECKPOINT_BARRIER, _barrier_payload(element)
    if isinstance(element, LatencyMarker):
        return FrameKind.LATENCY_MARKER, _LATENCY.pack(
            element.marked_ms, element.subtask_index
        ) + element.operator_id.encode()
    if isinstance(element, EndOfData):
        return FrameKind.END_OF_DATA, bytes([element.drain])
    return FrameKind.END_OF_PARTITION, b""


def _barrier_payload(barrier: CheckpointBarrier) -> bytes:
    options = barrier.options
    target = (options.target or "").encode("utf-8", "surrogatepass")
    base, timeout = (
        _NEVER if each is None else each
        for each in (options.builds_on, options.alignment_timeout_ms)
    )
    kind, form = options.snapshot_type.value, options.format_type.value
    return (
        _BARRIER.pack(
            barrier.checkpoint_id,
            barrier.timestamp_ms,
            kind,
            base,
            timeout,
            form,
            options.is_tracked,
        )
        + target
    )


def _barrier_of(payload: memoryview) -> CheckpointBarrier:
    checkpoint_id, timestamp_ms, kind, *numbers, form, is_tracked = _BARRIER.unpack_from(payload)
    target = str(payload[_BARRIER.size :], "utf-8", "surrogatepass") or None
    base, timeout = (None if each == _NEVER else each for each in numbers)
    options = CheckpointOptions(
        SnapshotType(kind), target, base, SavepointFormatType(form), timeout, is_tracked
    )
    return CheckpointBarrier(checkpoint_id, timestamp_ms, options)


def _length(buffers: Sequence[Any]) -> int:
    return sum(map(len, buffers))


def _with_table(kind: int, flags: int, parts: list[list[Any]]) -> Encoded:
    """A payload of several parts: a table of their lengths, then each part at its aligned place."""
    lengths = [_length(part) for part in parts]
    table = struct.pack(f"<{len(parts)}I", *lengths)
    buffers: list[Any] = [table]
    total = len(table)
    for part, length in zip(parts, lengths):
        padding = -total % ALIGNMENT
        if padding:
            buffers.append(_PADDING[:padding])
        buffers.extend(part)
        total += padding + length
    return Encoded(kind, flags, len(parts), buffers, total)


def _cut(payload: memoryview, parts: int) -> list[memoryview]:
    if parts == 1:
        return [payload]
    at = 4 * parts
    found = []
    for length in struct.unpack_from(f"<{parts}I", payload):
        at += -at % ALIGNMENT
        if at + length > len(payload):
            raise NetworkProtocolError("a part of a payload reaches beyond its end")
        found.append(payload[at : at + length])
        at += length
    return found


class ElementDecoder:
    """Decodes what one channel receives."""

    def __init__(self) -> None:
        self._schema: pa.Schema | None = None

    def decode(self, frame: Frame) -> Element | None:
        """The element; None for a schema, which is stored. Raises NetworkProtocolError, or whatever
        unpickling a record raises."""
        kind = frame.kind
        if kind == _ROWS:
            if frame.parts == 1 and not frame.flags:
                return RowBatch(pickle.loads(frame.payload))
            return self._decode_rows(frame)
        if kind == FrameKind.COLUMNS:
            return self._decode_columns(frame)
        if kind == FrameKind.SCHEMA:
            import pyarrow as pa

            self._schema = pa.ipc.read_schema(pa.py_buffer(frame.payload))
            return None
        try:
            return _decode_control(kind, frame.payload)
        except (struct.error, IndexError, ValueError) as error:
            raise NetworkProtocolError(f"a malformed {FrameKind(kind).name}: {error}") from None

    def _decode_rows(self, frame: Frame) -> RowBatch:
        parts = _cut(frame.payload, frame.parts)
        timestamps = _timestamps(parts.pop()) if frame.flags & FLAG_TIMESTAMPS else None
        return RowBatch(
            pickle.loads(parts[0], buffers=parts[1:]),
            timestamps.tolist() if timestamps is not None else None,
        )

    def _decode_columns(self, frame: Frame) -> ColumnBatch:
        import pyarrow as pa

        parts = _cut(frame.payload, frame.parts)
        data = pa.py_buffer(parts[0])
        if frame.flags & FLAG_STREAM:
            with pa.ipc.open_stream(data) as stream:
                batch = stream.read_next_batch()
        elif self._schema is None:
            raise NetworkProtocolError("columns arrived before their schema")
        else:
            batch = pa.ipc.read_record_batch(data, self._schema)
        if len(parts) == 1:
            return ColumnBatch(batch)
        import numpy as np

        kinds = np.frombuffer(parts.pop(), dtype="i1") if frame.flags & FLAG_KINDS else None
        stamps = np.frombuffer(parts[1], dtype="<i8") if frame.flags & FLAG_TIMESTAMPS else None
        return ColumnBatch(batch, stamps, kinds)


def _timestamps(part: memoryview) -> array[int]:
    timestamps = array("q")
    timestamps.frombytes(part)
    return timestamps


def _decode_control(kind: int, payload: memoryview) -> ControlElement:
    if kind == FrameKind.WATERMARK:
        return Watermark(_INT64.unpack(payload)[0])
    if kind == FrameKind.WATERMARK_STATUS:
        return WatermarkStatus(bool(payload[0]))
    if kind == FrameKind.CHECKPOINT_BARRIER:
        return _barrier_of(payload)
    if kind == FrameKind.LATENCY_MARKER:
        marked_ms, subtask = _LATENCY.unpack_from(payload)
        return LatencyMarker(marked_ms, str(payload[_LATENCY.size :], "utf-8"), subtask)
    if kind == FrameKind.END_OF_DATA:
        return EndOfData(bool(payload[0]))
    if kind == FrameKind.END_OF_PARTITION:
        return EndOfPartition()
    raise NetworkProtocolError(f"a frame of kind {kind} carries no element")
