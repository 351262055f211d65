"""Operators of window joins for tests, their input as rows and columns, and windows of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.graph.partitioning import KeySpec
from flinkpy.windowing.assigners import SlidingEventTimeWindows, TumblingEventTimeWindows
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from tests.operators.joining import Record, Subtasks

FIRST = KeySpec(selector=lambda value: value[0])
TUMBLING = TumblingEventTimeWindows(10)
SLIDING = SlidingEventTimeWindows(10, 4)


def pair(first: Any, second: Any) -> Any:
    return first, second


def group(first: list[Any], second: list[Any]) -> list[Any]:
    return [(first, second)]


def joined(
    assigner: Any = TUMBLING,
    lateness: int = 0,
    function: Any = pair,
    parallelism: int = 1,
    flat: bool = False,
) -> Subtasks:
    return Subtasks(
        lambda: WindowJoinOperator(function, FIRST, FIRST, assigner, lateness, flat=flat),
        parallelism,
    )


def grouped(
    assigner: Any = TUMBLING, lateness: int = 0, function: Any = group, parallelism: int = 1
) -> Subtasks:
    return Subtasks(
        lambda: WindowCoGroupOperator(function, FIRST, FIRST, assigner, lateness), parallelism
    )


def late_in(of: Subtasks) -> int:
    return sum(operator.late_records_dropped for operator in of.operators)


def columns(side: int, records: Sequence[Record]) -> Batch:
    data = {
        "k": [value[0] for value, _ in records],
        ("l", "r")[side]: [value[1] for value, _ in records],
    }
    return ColumnBatch(
        pa.RecordBatch.from_pydict(data), np.array([stamp for _, stamp in records], dtype=np.int64)
    )


ASSIGNERS = st.one_of(
    st.tuples(st.integers(2, 8), st.integers(-1, 1)).map(
        lambda sizes: TumblingEventTimeWindows(*sizes)
    ),
    st.tuples(st.integers(1, 12), st.integers(1, 8)).map(
        lambda sizes: SlidingEventTimeWindows(*sizes)
    ),
)
