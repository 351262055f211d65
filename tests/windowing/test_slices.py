"""Slices against the windows they are cut from."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    SlidingEventTimeWindows,
    SlidingProcessingTimeWindows,
    TimeWindow,
    TumblingEventTimeWindows,
    TumblingProcessingTimeWindows,
)
from flinkpy.windowing.slicing import Slicing, slicing_of
from tests.windowing.contexts import AssignerContext

HERE = AssignerContext()


@st.composite
def grids(draw: st.DrawFn) -> Slicing:
    slide = draw(st.integers(1, 30))
    return Slicing(draw(st.integers(1, 40)), slide, draw(st.integers(1 - slide, slide - 1)))


def windows_of(grid: Slicing, timestamp: int) -> list[TimeWindow]:
    return sorted(
        SlidingEventTimeWindows(grid.size, grid.slide, grid.offset).assign_windows(
            "x", timestamp, HERE
        )
    )


@given(grids(), st.integers(-200, 200))
def test_a_slice_belongs_to_the_windows_its_records_belong_to(
    grid: Slicing, timestamp: int
) -> None:
    windows, piece = windows_of(grid, timestamp), grid.slice_of(timestamp)
    assert piece <= timestamp < piece + grid.width
    assert list(grid.windows_of(piece)) == windows
    assert grid.last_window_end(piece) == (windows[-1].end if windows else None)
    for window in windows:
        assert piece in grid.slices_in(window)


@given(grids(), st.lists(st.integers(-100, 100), max_size=40))
def test_windows_put_together_from_slices_hold_what_they_hold_record_by_record(
    grid: Slicing, times: list[int]
) -> None:
    whole = Counter(window for time in times for window in windows_of(grid, time))
    slices = Counter(grid.slices_of_all(np.array(times, dtype=np.int64)).tolist())
    assert slices == Counter(map(grid.slice_of, times))
    windows = {window for piece in slices for window in grid.windows_of(piece)}
    assert {
        window: sum(slices[piece] for piece in grid.slices_in(window)) for window in windows
    } == dict(whole)


@given(grids(), st.integers(-50, 50), st.integers(-100, 100), st.integers(0, 20))
def test_a_record_is_late_when_all_its_windows_are_over(
    grid: Slicing, timestamp: int, watermark: int, lateness: int
) -> None:
    over = all(
        window.max_timestamp() + lateness <= watermark for window in windows_of(grid, timestamp)
    )
    assert grid.is_late(timestamp, watermark, lateness) == over


@pytest.mark.parametrize(
    ("assigner", "expected"),
    [
        (TumblingEventTimeWindows(10, 3), Slicing(10, 10, 3)),
        (TumblingProcessingTimeWindows(10), Slicing(10, 10, 0)),
        (SlidingEventTimeWindows(10, 4, 1), Slicing(10, 4, 1)),
        (SlidingProcessingTimeWindows(10, 5), Slicing(10, 5, 0)),
        (EventTimeSessionWindows(5), None),
    ],
)
def test_windows_on_a_grid_are_cut(assigner: Any, expected: Slicing | None) -> None:
    assert slicing_of(assigner) == expected
