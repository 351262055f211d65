"""Every value that goes into a frame of pandas is the value that went in."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flinkpy.columns.values.pandas_frames import pandas_frame
from flinkpy.common import Row, Types
from flinkpy.datastream import StreamExecutionEnvironment

LARGE = 2**53 + 1
WHOLE = {
    kind: st.integers(*limits)
    for kind, limits in {
        pa.int8(): (-(2**7), 2**7 - 1),
        pa.uint16(): (0, 2**16 - 1),
        pa.int64(): (-(2**63), 2**63 - 1),
        pa.uint64(): (0, 2**64 - 1),
    }.items()
}
ANY_TIME = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31))
ATOMS: dict[Any, st.SearchStrategy[Any]] = {
    **WHOLE,
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=3),
    pa.timestamp("us"): ANY_TIME,
    pa.timestamp("us", "UTC"): ANY_TIME.map(lambda at: at.replace(tzinfo=datetime.timezone.utc)),
    pa.date32(): st.dates(),
    pa.time64("us"): st.times(),
    pa.duration("us"): st.timedeltas(),
    pa.decimal128(38, 9): st.decimals("-1e20", "1e20", places=9),
}
KINDS = st.recursive(
    st.sampled_from(list(ATOMS)),
    lambda inner: (
        inner.map(pa.list_)
        | inner.map(lambda kind: pa.struct([("x", kind)]))
        | inner.map(lambda kind: pa.map_(pa.string(), kind))
    ),
    max_leaves=3,
)


def values_of(kind: Any) -> st.SearchStrategy[Any]:
    if pa.types.is_map(kind):
        return st.none() | st.dictionaries(
            st.text("ab", max_size=1), values_of(kind.item_type), max_size=2
        ).map(lambda found: list(found.items()))
    if pa.types.is_list(kind):
        return st.none() | st.lists(values_of(kind.value_type), max_size=3)
    if pa.types.is_struct(kind):
        return st.none() | st.fixed_dictionaries({"x": values_of(kind.field(0).type)})
    return st.none() | ATOMS[kind]


def plain(value: Any) -> Any:
    """The value as Python's, whatever numpy or pandas made of it; what is missing is None."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, (float, np.floating)) and value != value)
    ):
        return None
    if isinstance(value, pd.Timestamp):
        return value.to_pydatetime()
    if isinstance(value, pd.Timedelta):
        return value.to_pytimedelta()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        item = value.item()
        return None if item is None or np.isnat(value) else item
    return value.item() if isinstance(value, np.generic) else value


def exactly(value: Any) -> Any:
    """With its type, so that 2**53 as a float is not taken for the whole number."""
    if isinstance(value, dict):
        return {key: exactly(item) for key, item in value.items()}
    return [exactly(item) for item in value] if isinstance(value, list) else (type(value), value)


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    kind = draw(KINDS)
    return pa.array(draw(st.lists(values_of(kind), max_size=4)), kind)


@pytest.mark.finding("bugs 4")
@settings(max_examples=150, deadline=None)
@given(columns(), st.integers(0, 3))
@example(pa.array([LARGE, None]), 0)
@example(pa.array([2**64 - 1, None], pa.uint64()), 0)
@example(pa.array([[LARGE, None], None]), 0)
@example(pa.array([{"x": [LARGE, None]}, {"x": None}, None]), 0)
@example(pa.array([{"x": LARGE}, {"x": None}]), 0)
@example(pa.array([[("a", LARGE), ("b", None)], None], pa.map_(pa.string(), pa.int64())), 0)
@example(pa.array([LARGE, None]).dictionary_encode(), 0)
@example(pa.array([[LARGE, None], None], pa.list_(pa.int64(), 2)), 1)
def test_a_frame_holds_every_value_that_went_in(column: pa.Array, cut: int) -> None:
    wanted = [exactly(plain(value)) for value in column.to_pylist()]
    chunked = pa.chunked_array([column.slice(0, cut), column.slice(cut)], column.type)
    for data in (
        pa.table({"a": chunked, "b": chunked}),
        pa.RecordBatch.from_arrays([column, column], ["a", "a"]),
    ):
        frame = pandas_frame(data, "to_pandas()")
        for at in (0, 1):
            assert [exactly(plain(value)) for value in frame.iloc[:, at]] == wanted


def test_whole_numbers_without_nulls_have_numpys_type_and_times_of_nanoseconds_stay_arrows() -> (
    None
):
    frame = pandas_frame(
        pa.table({"n": [1, 2], "m": [1, None], "t": pa.array([1, None], pa.time64("ns"))}),
        "to_pandas()",
    )
    assert list(map(str, frame.dtypes)) == ["int64", "Int64", "time64[ns][pyarrow]"]


@pytest.mark.finding("bugs 4")
def test_no_stream_rounds_on_its_way_to_pandas() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    table = pa.table({"n": [LARGE, None], "u": pa.array([2**64 - 1, None], pa.uint64())})
    assert env.from_arrow(table).to_pandas()["n"].tolist() == [LARGE, pd.NA]
    given_to_function = (
        env.from_arrow(table).map_batches(lambda frame: frame, batch_format="pandas").to_arrow()
    )
    assert given_to_function.to_pydict() == table.to_pydict()
    rows = env.from_collection([Row(n=LARGE), Row(n=None)], Types.ROW_NAMED(["n"], [Types.LONG()]))
    assert rows.to_pandas()["n"].tolist() == [LARGE, pd.NA]
