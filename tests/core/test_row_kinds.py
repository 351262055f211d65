"""The kinds of a batch's rows go with the rows, whatever is made of the batch."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.core.elements import ColumnBatch
from flinkpy.core.memory import SizeEstimator
from tests.changes import changes, shown


@settings(max_examples=60, deadline=None)
@given(changes(), st.data())
def test_slices_and_rows_that_are_taken_keep_their_kinds(
    batch: ColumnBatch, data: st.DataObject
) -> None:
    rows, size = shown([batch]), len(batch)
    start = data.draw(st.integers(0, size))
    length = data.draw(st.none() | st.integers(0, size + 2))
    assert shown([batch.slice(start, length)]) == rows[start:][:length]
    positions = data.draw(st.lists(st.integers(0, size - 1))) if size else []
    assert shown([batch.take(np.array(positions, np.int64))]) == [rows[at] for at in positions]
    mask = data.draw(st.lists(st.none() | st.booleans(), min_size=size, max_size=size))
    kept = [row for row, is_kept in zip(rows, mask) if is_kept]
    assert shown([batch.filter(pa.array(mask, pa.bool_()))]) == kept


@settings(max_examples=60, deadline=None)
@given(changes(), st.data())
def test_other_columns_and_other_times_keep_the_kinds(
    batch: ColumnBatch, data: st.DataObject
) -> None:
    fewer = batch.with_columns(batch.data.select(["s"]))
    later = batch.with_timestamps(np.full(len(batch), 7, np.int64))
    kinds = [kind for kind, _, _ in shown([batch])]
    assert [kind for kind, _, _ in shown([fewer])] == kinds
    assert [(kind, at) for kind, at, _ in shown([later])] == [(kind, 7) for kind in kinds]
    assert shown([pickle.loads(pickle.dumps(batch, 5))]) == shown([batch])


@settings(max_examples=60, deadline=None)
@given(st.booleans().flatmap(lambda stamped: st.lists(changes(stamped=stamped), min_size=1)))
def test_parts_are_joined_with_their_kinds(parts: list[ColumnBatch]) -> None:
    if sum(map(len, parts)):
        assert shown([ColumnBatch.concat(parts)]) == shown(parts)


def test_rows_without_columns_have_kinds_too() -> None:
    data = pa.record_batch({"x": [1, 2, 3]}).select([])
    batch = ColumnBatch(data, None, np.array([0, 3, 1], np.int8))
    assert batch.take(np.array([2, 0])).kinds.tolist() == [1, 0]  # type: ignore[union-attr]


def test_inserts_only_have_one_form() -> None:
    data = pa.record_batch({"x": [1, 2]})
    batch = ColumnBatch(data, None, np.array([0, 3], np.int8))
    assert ColumnBatch(data, None, np.zeros(2, np.int8)).kinds is None
    assert batch.slice(0, 1).kinds is None
    assert batch != ColumnBatch(data)
    assert batch == ColumnBatch(data, None, np.array([0, 3], np.int8))
    assert repr(batch) == "ColumnBatch(2 rows of x, with kinds)"


@pytest.mark.parametrize("kinds", [np.array([0, 1]), np.array([1], np.int8)])
def test_kinds_of_another_type_or_number_are_refused(kinds: np.ndarray) -> None:
    with pytest.raises(ValueError, match="kinds are an int8 array"):
        ColumnBatch(pa.record_batch({"x": [1, 2]}), None, kinds)


def test_kinds_are_part_of_a_batchs_size() -> None:
    data = pa.record_batch({"x": list(range(100))})
    with_kinds = ColumnBatch(data, None, np.ones(100, np.int8))
    plain = SizeEstimator().bytes_of(ColumnBatch(data))
    assert SizeEstimator().bytes_of(with_kinds) == plain + 100
