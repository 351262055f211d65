"""Rows of columns come back from their bytes as they were, also cut from others and mixed with
others, with nulls at every depth."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.operators.columnar.row_bytes import Forms, RowBytes

INNER = pa.struct([("n", pa.int32()), ("t", pa.string()), ("b", pa.bool_())])
TYPES: dict[pa.DataType, Any] = {
    pa.int64(): st.integers(-5, 5),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=9),
    pa.large_binary(): st.binary(max_size=3),
    pa.timestamp("ms"): st.integers(0, 9),
    pa.list_(pa.int16()): st.lists(st.none() | st.integers(0, 9), max_size=3),
    pa.list_(pa.string()): st.lists(st.none() | st.text(max_size=3), max_size=3),
    pa.list_(pa.null()): st.lists(st.none(), max_size=2),
    pa.large_list(pa.int8()): st.lists(st.integers(0, 9), max_size=3),
    pa.map_(pa.string(), pa.int8()): st.lists(st.tuples(st.text(), st.integers(0, 9)), max_size=2),
    INNER: st.fixed_dictionaries({"n": st.none(), "t": st.text(max_size=3), "b": st.booleans()}),
    pa.list_(pa.struct([("n", pa.int8()), ("m", pa.int64())])): st.lists(
        st.none() | st.fixed_dictionaries({"n": st.integers(0, 9), "m": st.none()}), max_size=3
    ),
    pa.list_(pa.struct([("l", pa.list_(INNER)), ("t", pa.string())])): st.lists(
        st.none()
        | st.fixed_dictionaries(
            {
                "l": st.none()
                | st.lists(
                    st.none()
                    | st.fixed_dictionaries(
                        {"n": st.none() | st.integers(0, 9), "t": st.text(), "b": st.none()}
                    ),
                    max_size=3,
                ),
                "t": st.none() | st.text(max_size=9),
            }
        ),
        max_size=3,
    ),
}


@st.composite
def batches(draw: Any) -> pa.RecordBatch:
    kinds = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=4))
    count = draw(st.integers(1, 6))
    columns = [
        pa.array(draw(st.lists(st.none() | TYPES[kind], min_size=count, max_size=count)), kind)
        for kind in kinds
    ]
    return pa.RecordBatch.from_arrays(columns, names=[str(at) for at in range(len(kinds))])


@settings(max_examples=200, deadline=None)
@given(batches(), st.data())
def test_rows_come_back_from_their_bytes_as_they_were(
    rows: pa.RecordBatch, data: st.DataObject
) -> None:
    of = RowBytes(rows.schema)
    start = data.draw(st.integers(0, rows.num_rows - 1))
    part = rows.slice(start, data.draw(st.integers(1, rows.num_rows)))
    found = of.decoded(of.encoded(part))
    found.validate(full=True)
    assert found.equals(part)
    order = data.draw(st.permutations(range(rows.num_rows)))
    pieces = of.encoded(rows)
    assert of.decoded([pieces[at] for at in order]).equals(rows.take(pa.array(order)))


@pytest.mark.parametrize("as_arrow", [True, False])
def test_rows_with_lists_in_the_form_of_older_savepoints_are_read(as_arrow: bool) -> None:
    rows = pa.record_batch({"k": [1, 2], "l": [[{"n": 1, "t": "a"}], None]})
    forms, old = Forms(), RowBytes(rows.schema, as_arrow=as_arrow)
    forms.restore([old.serialized])
    written = [*old.encoded(rows), *forms.of(rows.schema).encoded(rows)]
    found = [row for each in forms.decoded(written) for row in each.to_pylist()]
    assert found == 2 * rows.to_pylist()
    assert forms.saved() == [old.serialized]
