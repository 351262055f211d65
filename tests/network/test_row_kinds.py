"""The kinds of rows arrive with the rows: over partitioners, the writer's gathering, the wire, files
of blocking exchanges, and channel state."""

from __future__ import annotations

import base64
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import ColumnBatch, Element, Watermark
from flinkpy.graph.partitioning import (
    BROADCAST,
    FORWARD,
    REBALANCE,
    SHUFFLE,
    KeySpec,
    Partitioning,
    PartitioningKind,
)
from flinkpy.network.channel_state import ElementLog, read_elements
from flinkpy.network.flow.batch_pieces import cut, pieces
from flinkpy.network.partitioning.partitioners import make_selector
from tests.changes import changes, shown
from tests.network.helpers import cluster
from tests.network.test_blocking import IN_MEMORY, PLACES, SINK, SOURCE, on_disk, read_all, written
from tests.network.test_frames import read, wire
from tests.network.test_writer import Line

SOME = st.lists(changes(min_size=1), max_size=5)


def hashed(*names: str) -> Partitioning:
    return Partitioning(PartitioningKind.HASH, KeySpec(columns=names), max_parallelism=16)


CUSTOM = Partitioning(
    PartitioningKind.CUSTOM,
    KeySpec(lambda row: row[0]),
    custom=lambda key, channels: key % channels,
)
PARTITIONINGS = st.sampled_from(
    [FORWARD, REBALANCE, SHUFFLE, BROADCAST, hashed("s"), hashed("s", "n"), CUSTOM]
)


@settings(max_examples=50, deadline=None)
@given(changes(min_size=1), st.integers(1, 9))
def test_pieces_of_a_batch_have_the_kinds_of_their_rows(batch: ColumnBatch, count: int) -> None:
    assert shown(pieces(batch, count)) == shown([batch])
    assert shown(cut(batch, min(count, len(batch)))) == shown([batch])


@settings(max_examples=50, deadline=None)
@given(PARTITIONINGS, st.integers(1, 5), SOME)
def test_partitioners_send_a_row_with_its_kind_in_order(
    partitioning: Partitioning, channels: int, batches: list[ColumnBatch]
) -> None:
    selector = make_selector(partitioning, channels)
    for batch in batches:
        sent = shown([batch])
        parts = dict(selector.split(batch))
        got = [shown([part]) for part in parts.values()]
        if partitioning is BROADCAST:
            assert got == [sent] * channels
            continue
        numbers = [part.data.column("n").to_pylist() for part in parts.values()]  # type: ignore[union-attr]
        assert all(each == sorted(each) for each in numbers)
        assert sorted((row for rows in got for row in rows), key=repr) == sorted(sent, key=repr)


@settings(max_examples=50, deadline=None)
@given(SOME, st.integers(1, 3), st.lists(st.booleans(), min_size=5, max_size=5))
def test_parts_that_are_gathered_and_passed_on_keep_their_kinds(
    batches: list[ColumnBatch], channels: int, flushes: list[bool]
) -> None:
    with Line(channels=channels, partitioning=hashed("s")) as line:
        for batch, flush in zip(batches, flushes):
            line.writer.emit(batch)
            if flush:
                line.writer.flush()
        line.writer.flush()
        got = [row for channel in range(channels) for row in shown(line.read(channel))]  # type: ignore[arg-type]
    assert sorted(got, key=repr) == sorted(shown(batches), key=repr)


@settings(max_examples=50, deadline=None)
@given(st.lists(changes(), max_size=5), st.lists(st.integers(1, 300), max_size=5))
def test_kinds_survive_the_wire_in_any_chunks(
    batches: list[ColumnBatch], chunks: list[int]
) -> None:
    sent: list[Element] = list(batches)
    assert shown(read(wire(sent), chunks)) == shown(batches)  # type: ignore[arg-type]


@settings(max_examples=50, deadline=None)
@given(st.lists(changes(), max_size=5))
def test_kinds_lie_in_channel_state(batches: list[ColumnBatch]) -> None:
    log = ElementLog()
    log.extend(batches)
    assert shown(read_elements(log.to_bytes())) == shown(batches)  # type: ignore[arg-type]


def test_batches_of_dictionaries_have_kinds_on_the_wire() -> None:
    data = pa.record_batch({"d": pa.array(["a", "b", "a"]).dictionary_encode()})
    for stamps in (None, np.array([1, 2, 3])):
        batch = ColumnBatch(data, stamps, np.array([3, 0, 1], np.int8))
        assert list(read(wire([batch, ColumnBatch(data), batch]), [1 << 20])) == [
            batch,
            ColumnBatch(data),
            batch,
        ]


def test_inserts_only_take_no_byte_more_than_before() -> None:
    data = pa.record_batch({"n": [1, 2]})
    assert wire([ColumnBatch(data, None, np.zeros(2, np.int8))]) == wire([ColumnBatch(data)])


# What an ElementLog held before rows had kinds: two batches of n = 1, None, 3, the first with
# times, a watermark, and a batch of dictionaries with times
OLDER_STATE = (
    "c-qxdF>b>!45TU9Rt*gvjKD*OJfuS&(4k*Qkhyclj2Zikj(I>n<rkzRORKiPv`I6CfJBiZiKBQL92Q{6p4ORUN4g"
    "bH0}(1HA<&7W@MHs7fp)JuxoLHh(~+-&TB2I5Q6TGQjRlQ=mpYMFEp^zvqHREj7Pg*}j;!JT!o3|7D@%lhb{7RPI"
    "4|{=DWf4fN~hfai@uAS)SQAHA2p1avpbi?m6<(?yMTX;uT<Bn2ejvTe88Ru4`wf6)^BZc<PE>UwRdvl;}`xjhffq"
    "U=Y5}e&woI9U-I3`;QluIL(%vPOS$zak8yp@=Ge{Wh+gjc^j=M>-x_m$RX<+AJ5Y=OKX03Jz#7QZzuw&T2g4tH#0"
    "z}1cykR-#x;$9QvC&kGc?="
)


def test_channel_state_from_before_there_were_kinds_is_restored() -> None:
    found = list(read_elements(zlib.decompress(base64.b85decode(OLDER_STATE))))
    numbers = pa.record_batch({"n": pa.array([1, None, 3])})
    assert found == [
        ColumnBatch(numbers, np.array([5, 6, 7])),
        ColumnBatch(numbers),
        Watermark(7),
        ColumnBatch(
            pa.record_batch({"d": pa.array(["a", "b"]).dictionary_encode()}), np.array([8, 9])
        ),
    ]


@PLACES
@pytest.mark.parametrize("spills", [False, True])
def test_a_blocking_partition_keeps_kinds(consumer_at: str, spills: bool, tmp_path: Path) -> None:
    data = pa.record_batch({"n": list(range(200))})
    batches = [
        ColumnBatch(data, None, np.arange(200, dtype=np.int8) % 4),
        ColumnBatch(data),
        ColumnBatch(data, np.arange(200), np.full(200, 3, np.int8)),
    ]
    with cluster("a", "b", config=on_disk(tmp_path) if spills else IN_MEMORY) as made:
        written(made, batches)
        got = read_all(made, made.gate(consumer_at, SINK, [("a", SOURCE)]))
        made.services[consumer_at].release(SINK)
        assert shown(each for each in got if isinstance(each, ColumnBatch)) == shown(batches)
        made.reactor.settle()
