from __future__ import annotations

import datetime
import decimal
import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import (
    CheckpointBarrier,
    CheckpointOptions,
    ColumnBatch,
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
from flinkpy.network.encoding.frames import (
    HEADER_SIZE,
    Frame,
    FrameDecoder,
    FrameKind,
    encode_header,
)
from flinkpy.network.encoding.payloads import ElementDecoder, ElementEncoder

MAX = 1 << 20
int64 = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.floats(allow_nan=False)
    | st.dates()
    | st.decimals(allow_nan=False),
    lambda inner: (
        st.tuples(inner, inner)
        | st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=5,
)


@st.composite
def row_batches(draw: st.DrawFn) -> RowBatch:
    rows = draw(st.lists(values, min_size=1, max_size=10))
    return RowBatch(rows, draw(st.none() | st.lists(int64, min_size=len(rows), max_size=len(rows))))


@st.composite
def column_batches(draw: st.DrawFn) -> ColumnBatch:
    count = draw(st.integers(1, 20))
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "i": st.none() | int64,
        "s": st.none() | st.text(max_size=4),
        "l": st.none() | st.lists(st.integers(0, 9), max_size=3),
        "b": st.none() | st.booleans(),
    }
    types = {
        "i": pa.int64(),
        "s": pa.string(),
        "l": pa.list_(pa.int64()),
        "b": pa.bool_(),
        "d": pa.dictionary(pa.int32(), pa.string()),
    }
    kinds["d"] = kinds["s"]
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), max_size=4))
    arrays = [
        pa.array(draw(st.lists(kinds[kind], min_size=count, max_size=count)), types[kind])
        for kind in chosen
    ]
    if arrays:
        data = pa.RecordBatch.from_arrays(
            arrays, names=[f"{kind}{i}" for i, kind in enumerate(chosen)]
        )
    else:
        data = pa.record_batch({"x": list(range(count))}).select([])
    begin = draw(st.integers(0, count - 1))
    stamps = draw(st.none() | st.lists(int64, min_size=count - begin, max_size=count - begin))
    return ColumnBatch(
        data.slice(begin), None if stamps is None else np.array(stamps, dtype=np.int64)
    )


checkpoint_options = st.builds(
    CheckpointOptions,
    st.sampled_from(SnapshotType),
    st.none() | st.text(min_size=1, max_size=8),
    st.none() | st.integers(0, 2**63 - 1),
    st.sampled_from(SavepointFormatType),
    st.none() | st.integers(0, 2**63 - 1),
    st.booleans(),
)
controls = st.one_of(
    st.builds(Watermark, int64),
    st.builds(WatermarkStatus, st.booleans()),
    st.builds(LatencyMarker, int64, st.text(max_size=8), st.integers(0, 2**32 - 1)),
    st.builds(CheckpointBarrier, int64, int64, checkpoint_options),
    st.builds(EndOfData, st.booleans()),
    st.just(EndOfPartition()),
)
elements = st.lists(st.one_of(row_batches(), column_batches(), controls), min_size=1, max_size=8)


def wire(sent: list[Element], encoder: ElementEncoder | None = None) -> bytes:
    encoder, stream, sequence = encoder or ElementEncoder(), b"", 0
    for element in sent:
        for encoded in encoder.encode(element):
            payload = b"".join(bytes(buffer) for buffer in encoded.buffers)
            assert len(payload) == encoded.length
            stream += (
                encode_header(
                    encoded.kind, encoded.flags, encoded.parts, 7, sequence, 3, 11, encoded.length
                )
                + payload
            )
            sequence += 1
    return stream


def read(
    stream: bytes, chunks: list[int], decoder: FrameDecoder | None = None
) -> Iterator[Element]:
    frames, channel, at, sequence = decoder or FrameDecoder(MAX, 4096), ElementDecoder(), 0, 0
    while at < len(stream):
        wanted = chunks[sequence % len(chunks)] if chunks else len(stream)
        buffer = frames.buffer
        part = stream[at : at + max(1, min(wanted, len(buffer)))]
        buffer[: len(part)] = part
        at += len(part)
        found: list[Element] = []

        def dispatch(frame: Frame, found: list[Element] = found) -> bool:
            nonlocal sequence
            assert (frame.channel, frame.sequence, frame.segments, frame.backlog) == (
                7,
                sequence,
                3,
                11,
            )
            sequence += 1
            element = channel.decode(frame)
            if element is not None:
                found.append(element)
            return True

        frames.feed(len(part), dispatch)
        yield from found
    assert not frames.mid_frame


@given(elements, st.lists(st.integers(1, 300), max_size=5))
@settings(deadline=None, max_examples=150)
def test_any_elements_survive_the_wire_in_any_chunks(
    sent: list[Element], chunks: list[int]
) -> None:
    # all kept until the end: nothing may refer to a buffer that is used again
    got = list(read(wire(sent), chunks))
    assert got == sent
    for before, after in zip(sent, got):
        assert type(before) is type(after)
        if isinstance(before, ColumnBatch) and isinstance(after, ColumnBatch):
            assert before.data.schema.equals(after.data.schema, check_metadata=True)
            after.data.validate(full=True)


def test_tuples_stay_tuples_and_types_stay_exact() -> None:
    batch = RowBatch(
        [
            (1, "a"),
            [1],
            {"k": (2,)},
            2**80,
            decimal.Decimal("1.50"),
            datetime.timedelta(1),
            True,
            1.0,
        ]
    )
    (got,) = read(wire([batch]), [])
    assert isinstance(got, RowBatch)
    assert repr(got.values) == repr(batch.values)


def test_records_that_refer_to_themselves_or_change_their_form_travel_whatever_came_before() -> (
    None
):
    loop: list[Any] = [1]
    loop.append(loop)
    sent: list[Element] = [
        RowBatch([(1, "a"), (2, "b")]),
        RowBatch([(1, loop)]),
        RowBatch([(1, "a"), loop, (3, 4)]),
        RowBatch([(1, "a"), Place("Rome"), (2, 3)]),
    ]
    got = list(read(wire(sent), []))
    assert got[0] == sent[0]
    assert got[3] == sent[3]
    for batch, position in ((got[1], 0), (got[2], 1)):
        assert isinstance(batch, RowBatch)
        again = batch.values[position][1] if position == 0 else batch.values[position]
        assert again[1] is again


@pytest.mark.parametrize("chunk", [1000, 1 << 20])
def test_large_arrays_travel_out_of_band_and_stay_writable_and_apart(chunk: int) -> None:
    arrays = [np.arange(10_000) * i for i in range(4)]
    sent: list[Element] = [RowBatch([("x", array)], [5]) for array in arrays]
    first = ElementEncoder().encode(sent[0])[0]
    assert first.parts == 3
    assert any(
        isinstance(buffer, memoryview) and buffer.nbytes == 80_000 for buffer in first.buffers
    )
    got = list(read(wire(sent), [chunk]))
    for array, batch in zip(arrays, got):
        assert isinstance(batch, RowBatch)
        assert batch.timestamps == [5]
        assert np.array_equal(batch.values[0][1], array)
        batch.values[0][1][0] = -1


def test_a_schema_travels_once_and_again_when_it_changes() -> None:
    encoder = ElementEncoder()
    narrow = ColumnBatch(pa.record_batch({"a": [1]}))
    wide = ColumnBatch(pa.record_batch({"a": [1], "b": ["x"]}))
    kinds = [
        [encoded.kind for encoded in encoder.encode(batch)]
        for batch in (narrow, narrow, wide, narrow)
    ]
    both = [FrameKind.SCHEMA, FrameKind.COLUMNS]
    assert kinds == [both, [FrameKind.COLUMNS], both, both]


def test_columns_are_sent_and_received_without_copying() -> None:
    data = pa.record_batch({"a": np.arange(50_000)})
    encoded = ElementEncoder().encode(ColumnBatch(data))[-1]
    assert any(
        getattr(buffer, "address", 0) == data.column(0).buffers()[1].address
        for buffer in encoded.buffers
    )
    (got,) = read(wire([ColumnBatch(data)]), [1 << 20])
    assert isinstance(got, ColumnBatch)
    assert got.data.column(0).buffers()[1].address % 8 == 0


def test_a_slice_of_columns_sends_only_its_part() -> None:
    data = pa.record_batch({"a": np.arange(50_000)})
    assert ElementEncoder().encode(ColumnBatch(data.slice(10, 100)))[-1].length < 2000


@dataclass(frozen=True)
class Place:
    city: str


def test_classes_that_exist_only_by_value_travel_too() -> None:
    namespace: dict[str, Any] = {"__name__": "__main__", "dataclass": dataclass}
    exec("@dataclass(frozen=True)\nclass Local:\n    city: str", namespace)
    sent = [RowBatch([namespace["Local"]("Bonn")]), RowBatch([Place("Rome"), np.arange(5000)])]
    encoder = ElementEncoder()
    got = list(read(wire(list(sent), encoder), []))
    assert isinstance(got[0], RowBatch)
    assert got[0].values[0].city == "Bonn"
    assert isinstance(got[1], RowBatch)
    assert got[1].values[0] == Place("Rome")


def test_a_record_that_cannot_travel_is_the_authors_to_change() -> None:
    with pytest.raises(ProgramError, match="records cannot be sent to another process"):
        ElementEncoder().encode(RowBatch([(i for i in range(3))]))


def garbled(**changes: int) -> bytes:
    fields = {
        "kind": 1,
        "flags": 0,
        "parts": 1,
        "channel": 1,
        "sequence": 0,
        "segments": 1,
        "backlog": 0,
        "length": 4,
    } | changes
    return encode_header(*fields.values())


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "not a frame: it begins with 474554"),
        (garbled(kind=99), "not a frame"),
        (
            garbled(length=MAX + 1),
            rf"announces {MAX + 1} bytes, more than taskmanager.network.max-frame-size",
        ),
    ],
)
def test_what_is_no_frame_is_refused(stream: bytes, message: str) -> None:
    with pytest.raises(NetworkProtocolError, match=message):
        list(read(stream, []))


@pytest.mark.parametrize(
    "stream",
    [
        garbled(kind=FrameKind.WATERMARK) + b"abcd",
        garbled(kind=FrameKind.END_OF_DATA, length=0),
        garbled(kind=FrameKind.COLUMNS) + b"abcd",
        garbled(kind=FrameKind.ROWS, parts=2, length=8) + b"\xff" * 8,
        garbled(kind=FrameKind.LATENCY_MARKER, length=13) + b"\xff" * 13,
    ],
)
def test_a_malformed_payload_is_refused(stream: bytes) -> None:
    for frame in frames_of(stream):
        with pytest.raises(NetworkProtocolError):
            ElementDecoder().decode(frame)


def frames_of(stream: bytes) -> list[Any]:
    decoder = FrameDecoder(MAX)
    decoder.buffer[: len(stream)] = stream
    return fed(decoder, len(stream))


def fed(decoder: FrameDecoder, count: int) -> list[Frame]:
    """What the decoder makes of so many bytes more."""
    found: list[Frame] = []

    def keep(frame: Frame) -> bool:
        found.append(frame)
        return True

    decoder.feed(count, keep)
    return found


def test_no_frame_is_given_out_after_one_that_ended_the_connection() -> None:
    stream = wire([RowBatch([1]), RowBatch([2]), RowBatch([3])])
    decoder, seen = FrameDecoder(MAX), list[int]()
    decoder.buffer[: len(stream)] = stream

    def dispatch(frame: Frame) -> bool:
        seen.append(frame.sequence)
        return frame.sequence < 1

    decoder.feed(len(stream), dispatch)
    assert seen == [0, 1]


def test_a_truncated_stream_is_known_to_end_inside_a_frame() -> None:
    stream = wire([RowBatch([1, 2, 3])])
    decoder = FrameDecoder(MAX)
    for end in (HEADER_SIZE - 1, len(stream) - 1):
        decoder = FrameDecoder(MAX)
        decoder.buffer[:end] = stream[:end]
        assert fed(decoder, end) == []
        assert decoder.mid_frame


def test_nothing_is_unpickled_by_the_frame_decoder() -> None:
    bomb = pickle.dumps(Bomb())
    frames = frames_of(encode_header(FrameKind.REQUEST, 0, 1, 1, 0, 1, 0, len(bomb)) + bomb)
    assert bytes(frames[0].payload) == bomb


class Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("unpickled",))
