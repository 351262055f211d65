"""Every form of windows and joins counts the late records it drops in the same metric."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from flinkpy.core.elements import RowBatch, Watermark
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.functions import RuntimeContext
from flinkpy.operators.process.interval_join import IntervalJoinOperator
from flinkpy.windowing.assigners import TumblingEventTimeWindows
from flinkpy.windowing.general.window_operator import WindowOperator
from flinkpy.windowing.joins.columnar_join import ColumnarJoinOperator
from flinkpy.windowing.joins.window_co_group import WindowCoGroupOperator
from flinkpy.windowing.joins.window_join import WindowJoinOperator
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windowing_strategy import WindowingStrategy
from tests.operators.harness import ChainHarness, linear
from tests.windowing.joins import columns
from tests.windowing.slice_harness import field_windows, row_windows
from tests.windowing.test_window_contract import Chosen

FIRST, WINDOWS = KeySpec(lambda pair: pair[0]), TumblingEventTimeWindows(10)
RECORDS = [(("a", 1), 5), (("a", 2), 25), (("b", 3), 9)]  # two of them before 10


def rows(side: int, records: Any) -> RowBatch:
    return RowBatch([value for value, _ in records], [stamp for _, stamp in records])


@pytest.mark.parametrize(
    ("operator", "batch"),
    [
        (
            lambda: WindowOperator(
                FIRST, WindowingStrategy(WINDOWS), window_function=lambda key, window, found: [key]
            ),
            rows,
        ),
        (lambda: row_windows(FIRST, Slicing(10, 10, 0), True, "count"), rows),
        (lambda: field_windows(("k",), Slicing(10, 10, 0), True, "sum", "l", 0, None), columns),
        (lambda: WindowJoinOperator(lambda left, right: left, FIRST, FIRST, WINDOWS), rows),
        (lambda: WindowCoGroupOperator(lambda left, right: left, FIRST, FIRST, WINDOWS), rows),
        (lambda: ColumnarJoinOperator(("k",), ("k",), WINDOWS), columns),
        (lambda: IntervalJoinOperator(lambda left, right, ctx: [left], FIRST, FIRST, -1, 1), rows),
    ],
    ids=["windows", "slices", "columns", "join", "co-group", "join of columns", "interval join"],
)
def test_dropped_records_are_in_the_metric(
    operator: Callable[[], Any], batch: Callable[[int, Any], Any]
) -> None:
    made = operator()
    inputs = 2 if hasattr(made, "process_batch1") else 1
    harness = ChainHarness(linear(made, inputs=inputs))
    harness.control(Watermark(10))
    for side in range(inputs):
        harness.chain.batch_inputs()[side](batch(side, RECORDS))
    metric = RuntimeContext(made.context).get_metrics_group().counter("numLateRecordsDropped")
    assert metric.get_count() == made.late_records_dropped == 2 * inputs
    harness.chain.close()


@pytest.mark.parametrize(("stamp", "dropped"), [(15, 0), (10, 1)])
def test_a_record_that_belongs_to_no_window_is_late_only_beyond_the_allowed_lateness(
    stamp: int, dropped: int
) -> None:
    made = WindowOperator(
        FIRST,
        WindowingStrategy(Chosen(), allowed_lateness=10),
        window_function=lambda key, window, found: [key],
    )
    harness = ChainHarness(linear(made))
    harness.chain.control(Watermark(20))
    harness.chain.batch_inputs()[0](RowBatch([("a", 1)], [stamp]))
    assert made.late_records_dropped == dropped
    harness.chain.close()
