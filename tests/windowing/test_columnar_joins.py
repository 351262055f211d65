"""Window joins of columns give what rows give; how keys are matched, and when aligned windows are
complete."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import ProgramError
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.column_matching import matching_pairs
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.slicing import Slicing
from tests.operators.joining import Subtasks, disordered
from tests.windowing.joins import ASSIGNERS, TUMBLING, columns, joined, late_in


@given(disordered(), ASSIGNERS, st.integers(1, 3))
def test_columns_are_joined_as_rows_are(steps: list[Any], assigner: Any, parallelism: int) -> None:
    of = Subtasks(lambda: ColumnarJoinOperator(["k"], ["k"], assigner), parallelism, columns)
    expected = joined(assigner, parallelism=parallelism)
    found = Counter(of.run(steps).main)
    assert found == Counter(
        ((one[0], one[1], other[1]), stamp) for (one, other), stamp in expected.run(steps).main
    )
    assert late_in(of) == late_in(expected)
    assert of.operators[0].entries_held() == 0


def schema(**types: Any) -> Any:
    return pa.schema([pa.field(name, kind) for name, kind in types.items()])


def test_columns_of_one_name_are_told_apart_and_a_key_of_one_name_stands_once() -> None:
    left = schema(id=pa.int32(), at=pa.int64(), price=pa.float64())
    right = schema(id=pa.int64(), at=pa.int64(), name=pa.string())
    assert ColumnarJoinOperator(["id"], ["id"], TUMBLING).output_schema(left, right) == schema(
        id=pa.int32(), at=pa.int64(), price=pa.float64(), at_right=pa.int64(), name=pa.string()
    )
    assert ColumnarJoinOperator(["id"], ["at"], TUMBLING).output_schema(left, right).names == [
        "id",
        "at",
        "price",
        "id_right",
        "at_right",
        "name",
    ]


def test_columns_that_cannot_be_joined_are_refused() -> None:
    operator = ColumnarJoinOperator(["id"], ["name"], TUMBLING)
    with pytest.raises(ProgramError, match="'id' is int64 and the key 'name' is string"):
        operator.output_schema(schema(id=pa.int64()), schema(name=pa.string()))
    with pytest.raises(ProgramError, match="two columns of the result would be called 'id_right'"):
        operator.output_schema(
            schema(id=pa.string(), id_right=pa.int64()), schema(name=pa.string(), id=pa.int64())
        )
    with pytest.raises(ProgramError, match="did you mean 'namee'"):
        operator.output_schema(schema(id=pa.string()), schema(namee=pa.string(), name_=pa.int64()))


VALUES: Any = st.one_of(
    st.just((pa.int64(), st.integers(-3, 3))),
    st.just((pa.int64(), st.sampled_from([0, 10**15, -(10**15)]))),
    st.just((pa.string(), st.sampled_from(["", "a", "b"]))),
    st.just((pa.int32(), st.one_of(st.none(), st.integers(0, 2)))),
    st.just((pa.float64(), st.sampled_from([0.0, -0.0, 1.5, math.nan, -math.nan, None]))),
    st.just((pa.bool_(), st.booleans())),
    st.just((pa.timestamp("ns"), st.sampled_from([None, 0, 1, 1000]))),
    st.just((pa.time64("ns"), st.sampled_from([None, 0, 1, 1000]))),
    st.just(
        (
            pa.struct([("a", pa.float64()), ("b", pa.string())]),
            st.sampled_from([None, {"a": 0.0, "b": None}, {"a": -0.0, "b": None}]),
        )
    ),
)


@given(st.data(), st.lists(VALUES, min_size=1, max_size=3), st.integers(0, 8), st.integers(0, 8))
def test_matching_pairs_are_those_with_equal_keys_in_order(
    data: Any, kinds: list[Any], ours: int, theirs: int
) -> None:
    sides = [
        [data.draw(st.lists(values, min_size=count, max_size=count)) for _, values in kinds]
        for count in (ours, theirs)
    ]
    arrays = [
        [pa.chunked_array([pa.array(column, kind)]) for column, (kind, _) in zip(side, kinds)]
        for side in sides
    ]
    left, right = matching_pairs(*arrays)
    rows = [list(zip(*side)) for side in sides]
    expected = [
        (i, j) for i in range(ours) for j in range(theirs) if _same_key(rows[0][i], rows[1][j])
    ]
    assert list(zip(left.tolist(), right.tolist())) == expected


def _same_key(left: tuple[Any, ...], right: tuple[Any, ...]) -> bool:
    """As in SQL, None is equal to nothing; a not-a-number is a key."""
    return all(
        one is not None and (one == other or (one != one and other != other and other is not None))
        for one, other in zip(left, right)
    )


def test_a_dictionary_column_matches_plain_text_and_integers_of_any_width_match() -> None:
    text = pa.chunked_array([pa.array(["a", "b"]).dictionary_encode()])
    assert [each.tolist() for each in matching_pairs([text], [pa.chunked_array([["b", "b"]])])] == [
        [1, 1],
        [0, 1],
    ]
    narrow = pa.chunked_array([pa.array([1, 2], pa.int8())])
    wide = pa.chunked_array([pa.array([2, 300], pa.int64())])
    assert [each.tolist() for each in matching_pairs([narrow], [wide])] == [[1], [0]]


# -- aligned windows -------------------------------------------------------------------------------


@given(
    st.integers(1, 12),
    st.integers(1, 8),
    st.integers(0, 6),
    st.lists(st.tuples(st.integers(-20, 40), st.integers(0, 9)), max_size=20),
)
def test_aligned_windows_give_each_window_once_and_each_slice_when_no_window_needs_it(
    size: int, slide: int, lateness: int, steps: list[tuple[int, int]]
) -> None:
    slicing = Slicing(size, slide, 0)
    windows = AlignedWindows(slicing, lateness)
    opened: set[int] = set()
    watermark, given_windows, gone = -30, [], []
    windows.advance(watermark)
    for stamp, step in [*steps, (0, 10**6)]:
        start = slicing.slice_of(stamp)
        if (
            slicing.last_window_end(start) is not None
            and windows.open_for(stamp)
            and start not in opened
        ):
            opened.add(start)
            windows.open_slice(start)
        before, watermark = watermark, watermark + step
        complete = windows.advance(watermark)
        assert all(before < window.max_timestamp() <= watermark for window in complete)
        given_windows += complete
        expired = windows.ended_slices()
        assert all(
            windows.cleanup_time(slicing.last_window_end(each) or 0) <= watermark
            for each in expired
        )
        gone += expired
    assert len(set(given_windows)) == len(given_windows)
    assert sorted(gone) == sorted(opened)
