"""Batches of columns that an exchange has split: the gate puts the pieces together again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import (
    CheckpointBarrier,
    ColumnBatch,
    Element,
    EndOfData,
    RowBatch,
    Watermark,
)
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.network.gate import MOST_ROWS
from tests.network.helpers import attempt, cluster, poll_all

SINK, SOURCE = attempt("sink"), attempt("source")
ROOMY = NetworkConfig(
    total_segments=4096, segment_size=32768, partition_request_timeout=timedelta(seconds=2)
)


def piece(first: int, rows: int, stamped: bool = False, kinds: bool = False) -> ColumnBatch:
    numbers = np.arange(first, first + rows)
    return ColumnBatch(
        pa.record_batch({"n": numbers}),
        numbers * 10 if stamped else None,
        (numbers % 4).astype(np.int8) if kinds else None,
    )


def read(elements: list[Element], at: str = "a", config: NetworkConfig = ROOMY) -> list[Element]:
    """What a gate gives of these elements of one producer."""
    with cluster("a", "b", config=config) as made:
        gate = made.gate(at, SINK, [("a", SOURCE)])
        made.reactor.settle()
        writer = made.writer("a", SOURCE)
        for element in elements:
            if not isinstance(element, (RowBatch, ColumnBatch)):
                writer.emit_control(element)
            else:
                writer.emit(element)
        writer.flush()
        made.reactor.settle()
        found = [element for _, element in poll_all(gate)]
        assert gate.poll() is None
        made.services[at].release(SINK)
        made.services["a"].release(SOURCE)
        made.reactor.settle()
        assert set(made.in_use().values()) == {0}
    return found


@pytest.mark.parametrize("at", ["a", "b"])
def test_pieces_that_wait_one_behind_the_other_become_one_batch(at: str) -> None:
    pieces: list[Element] = [piece(0, 3, True, True), piece(3, 5, True, True)]
    assert read(pieces, at) == [piece(0, 8, True, True)]


@pytest.mark.parametrize(
    "between", [Watermark(1), CheckpointBarrier(1, 2), RowBatch(["a row"]), EndOfData()]
)
def test_no_piece_passes_what_stands_between(between: Element) -> None:
    behind: list[Element] = [] if isinstance(between, EndOfData) else [piece(2, 2)]
    elements = [piece(0, 2), between, *behind]
    assert read(elements) == elements


def test_where_batches_of_one_row_are_sent_each_stays_one_and_so_do_larger_ones() -> None:
    elements: list[Element] = [piece(0, 1), piece(1, 2), piece(3, 1)]
    assert read(elements, config=replace(ROOMY, batch_records=1)) == elements


def test_a_full_batch_is_passed_on_as_it_is() -> None:
    full = piece(0, MOST_ROWS)
    assert read([piece(0, 2), full, piece(0, 2)]) == [piece(0, 2), full, piece(0, 2)]


def test_pieces_that_are_not_alike_stay_apart() -> None:
    other = ColumnBatch(pa.record_batch({"n": [0.5, 1.5]}))
    elements: list[Element] = [piece(0, 2), other, piece(2, 2, stamped=True), piece(4, 2)]
    assert read(elements) == elements


@given(st.lists(st.integers(1, MOST_ROWS // 2), max_size=12))
def test_every_row_comes_once_and_in_order_and_no_batch_has_more_rows_than_fit(
    sizes: list[int],
) -> None:
    pieces, first = [], 0
    for rows in sizes:
        pieces.append(piece(first, rows, True, True))
        first += rows
    found = [each for each in read(list(pieces)) if isinstance(each, ColumnBatch)]
    assert all(len(each) <= MOST_ROWS for each in found)
    assert not pieces or ColumnBatch.concat(found) == ColumnBatch.concat(pieces)
