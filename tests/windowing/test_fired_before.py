"""What is known of windows that had fired before a restore, where records and accumulators lay on
disk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.columns import col
from flinkpy.columns.aggregate_plan import aggregate_calls
from flinkpy.core.clock import Turns
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.keys import key_group
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.fired_before import FiredBefore
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow
from tests.windowing.slice_harness import MAX_PARALLELISM, Alone, aggregate_windows

WINDOW, KEY = TimeWindow(0, 10), "a"


@pytest.mark.parametrize("had", [True, False])
def test_a_late_record_has_a_window_fire_again_unless_it_had_ended_with_records_of_the_key(
    had: bool,
) -> None:
    fired = FiredBefore(AlignedWindows(Slicing(10, 10, 0)), MAX_PARALLELISM)
    group = key_group(KEY, MAX_PARALLELISM)
    fired.groups({group: (20, {})})
    fired.gets_record(WINDOW, KEY, lambda: had)
    is_to_fire = fired.on_disk(WINDOW, group)
    assert is_to_fire is not None
    assert is_to_fire(KEY) is not had
    assert fired.take(WINDOW) == ({KEY: True} if had else {})


def test_a_saved_share_of_columns_knows_the_key_group_under_which_it_lies() -> None:
    operator = aggregate_windows(
        ["k"], Slicing(10, 10, 0), True, aggregate_calls([col("n").sum.alias("sum")], "test")
    )
    alone = Alone(operator)
    data = pa.record_batch({"k": [f"key {number}" for number in range(40)], "n": [1] * 40})
    alone.push(ColumnBatch(data, np.zeros(40, np.int64)))
    saved = list(operator.store.freeze()(Turns()))
    assert {operator.store.group_of(share, MAX_PARALLELISM) for _, share, _ in saved} == {
        key_group(key, MAX_PARALLELISM) for key, _, _ in saved
    }
    assert all(
        operator.store.group_of(share, MAX_PARALLELISM) == key_group(key, MAX_PARALLELISM)
        for key, share, _ in saved
    )
    assert len(saved) == MAX_PARALLELISM
