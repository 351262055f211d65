"""The set of a key's open windows: what it says to merge, and that no record's state is ever lost,
doubled or mixed up."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common import Time
from flinkpy.core.errors import EngineError
from flinkpy.datastream.window import (
    EventTimeSessionWindows,
    EventTimeTrigger,
    MergingWindowAssigner,
    TimeWindow,
)
from flinkpy.windowing.general.merging_window_set import Merge, MergingWindowSet
from flinkpy.windowing.session_windows import DynamicEventTimeSessionWindows
from tests.windowing.contexts import AssignerContext
from tests.windowing.harness import listing, summing


def sessions() -> MergingWindowSet[TimeWindow]:
    return MergingWindowSet(EventTimeSessionWindows(3))


def test_a_window_alone_keeps_its_own_state() -> None:
    windows = sessions()
    assert windows.add(TimeWindow(0, 3)) == (TimeWindow(0, 3), [])
    assert windows.add(TimeWindow(5, 8)) == (TimeWindow(5, 8), [])
    assert windows.snapshot() == {
        TimeWindow(0, 3): TimeWindow(0, 3),
        TimeWindow(5, 8): TimeWindow(5, 8),
    }
    assert windows.changed


def test_a_growing_session_keeps_its_state_where_it_began() -> None:
    windows = sessions()
    windows.add(TimeWindow(0, 3))
    assert windows.add(TimeWindow(2, 5)) == (
        TimeWindow(0, 5),
        [Merge(TimeWindow(0, 5), (TimeWindow(0, 3),), TimeWindow(0, 3), ())],
    )
    assert windows.add(TimeWindow(-2, 1)) == (
        TimeWindow(-2, 5),
        [Merge(TimeWindow(-2, 5), (TimeWindow(0, 5),), TimeWindow(0, 3), ())],
    )
    assert windows.state_window(TimeWindow(-2, 5)) == TimeWindow(0, 3)
    assert windows.state_window(TimeWindow(0, 5)) is None


def test_a_window_within_an_open_one_merges_nothing() -> None:
    windows = MergingWindowSet(EventTimeSessionWindows(3), {TimeWindow(1, 9): TimeWindow(1, 4)})
    assert windows.add(TimeWindow(3, 6)) == (TimeWindow(1, 9), [])
    assert windows.add(TimeWindow(1, 9)) == (TimeWindow(1, 9), [])
    assert not windows.changed


def test_a_bridge_takes_two_sessions_together_and_says_whose_state_goes_where() -> None:
    windows = sessions()
    windows.add(TimeWindow(0, 3))
    windows.add(TimeWindow(6, 9))
    windows.add(TimeWindow(20, 23))
    assert windows.add(TimeWindow(3, 6)) == (
        TimeWindow(0, 9),
        [
            Merge(
                TimeWindow(0, 9),
                (TimeWindow(0, 3), TimeWindow(6, 9)),
                TimeWindow(0, 3),
                (TimeWindow(6, 9),),
            )
        ],
    )
    assert windows.snapshot() == {
        TimeWindow(0, 9): TimeWindow(0, 3),
        TimeWindow(20, 23): TimeWindow(20, 23),
    }


def test_a_window_around_an_open_one_takes_its_state_over() -> None:
    windows = sessions()
    windows.add(TimeWindow(2, 4))
    assert windows.add(TimeWindow(0, 9)) == (
        TimeWindow(0, 9),
        [Merge(TimeWindow(0, 9), (TimeWindow(2, 4),), TimeWindow(2, 4), ())],
    )


def test_a_retired_window_is_gone() -> None:
    windows = sessions()
    windows.add(TimeWindow(0, 3))
    windows.retire(TimeWindow(0, 3))
    assert (len(windows), windows.state_window(TimeWindow(0, 3))) == (0, None)
    with pytest.raises(EngineError, match="not among"):
        windows.retire(TimeWindow(0, 3))


def test_an_assigner_may_merge_windows_the_record_is_not_in() -> None:
    class Restless(DynamicEventTimeSessionWindows):
        """Takes all together whenever it is asked, but for the last."""

        def merge_windows(
            self, windows: Any, callback: MergingWindowAssigner.MergeCallback[TimeWindow]
        ) -> None:
            windows = list(windows)[:-1]
            if len(windows) > 1:
                callback.merge(
                    windows, TimeWindow(min(w.start for w in windows), max(w.end for w in windows))
                )

    windows: MergingWindowSet[TimeWindow] = MergingWindowSet(Restless(lambda element: 1))
    for start in (0, 10):
        windows.add(TimeWindow(start, start + 1))
    found, [merge] = windows.add(TimeWindow(20, 21))
    assert found == TimeWindow(20, 21)
    assert (merge.result, merge.state_window, merge.absorbed) == (
        TimeWindow(0, 11),
        TimeWindow(0, 1),
        (TimeWindow(10, 11),),
    )
    assert len(windows) == 2


@given(
    st.lists(st.tuples(st.integers(0, 150), st.integers(1, 12)), max_size=30), st.integers(0, 2**32)
)
def test_whatever_comes_in_whatever_order_each_session_ends_up_with_its_records(
    events: list[tuple[int, int]], seed: int
) -> None:
    """Events are (time, gap). State is a list of events per state window, moved only as the set
    says; it is written back and read in between."""
    assigner = DynamicEventTimeSessionWindows(lambda event: event[1])
    random.Random(seed).shuffle(events)
    kept: dict[TimeWindow, TimeWindow] = {}
    state: dict[TimeWindow, list[tuple[int, int]]] = {}
    for event in events:
        windows = MergingWindowSet(assigner, kept)
        [window] = assigner.assign_windows(event, event[0], AssignerContext())
        found, merges = windows.add(window)
        for merge in merges:
            for absorbed in merge.absorbed:
                state[merge.state_window] += state.pop(absorbed)
        place = windows.state_window(found)
        assert place is not None
        state.setdefault(place, []).append(event)
        assert windows.changed == (windows.snapshot() != kept)
        kept = windows.snapshot()
    expected: list[tuple[TimeWindow, list[tuple[int, int]]]] = []
    for time, gap in sorted(events):
        if expected and time <= expected[-1][0].end:
            expected[-1] = (
                expected[-1][0].cover(TimeWindow(time, time + gap)),
                [*expected[-1][1], (time, gap)],
            )
        else:
            expected.append((TimeWindow(time, time + gap), [(time, gap)]))
    assert sorted((window, sorted(state[place])) for window, place in kept.items()) == expected
    assert len(state) == len(kept)


def gap_of(record: tuple[str, int, int]) -> int:
    return record[2]


APART = [(("a", number, 2), 10 * number) for number in (1, 2, 3)]  # three open sessions
BRIDGE = (("a", 100, 50), 9)  # its own session reaches over all of them


@pytest.mark.finding("faults 9")
def test_a_record_that_joins_several_open_sessions_takes_the_contents_of_all() -> None:
    assigner = EventTimeSessionWindows.with_dynamic_gap(gap_of)
    window = TimeWindow(9, 59)
    for trigger in (None, EventTimeTrigger.create()):
        sums = summing(assigner, trigger).push(*APART, BRIDGE).end()
        assert [value[1] for value in sums.values()] == [106]
        lists = listing(
            assigner,
            trigger=trigger,
            function=lambda key, window, found: [(window, sorted(record[1] for record in found))],
        )
        assert lists.push(*APART, BRIDGE).end().values() == [(window, [1, 2, 3, 100])]


@pytest.mark.finding("faults 9")
@pytest.mark.parametrize("late_by", [0, 5])
def test_windows_that_have_merged_leave_no_timers(late_by: int) -> None:
    class Own(EventTimeTrigger):
        """Any trigger of a program's own: its windows are not those of the fast way."""

    windows = summing(
        EventTimeSessionWindows.with_gap(Time.milliseconds(5)), Own(), allowed_lateness=late_by
    )
    windows.push((("a", 1), 0))
    alone = len(windows.operator._service.event)
    for time in range(3, 60, 3):
        windows.push((("a", 1), time))
    assert len(windows.operator._service.event) == alone
