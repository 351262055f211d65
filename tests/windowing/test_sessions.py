"""Merging, against the union of intervals worked out moment by moment."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.datastream.window import (
    DynamicEventTimeSessionWindows,
    EventTimeSessionWindows,
    SessionWindowTimeGapExtractor,
    TimeWindow,
)
from tests.windowing.contexts import AssignerContext, Merges

WINDOWS = st.lists(
    st.builds(
        lambda start, length: TimeWindow(start, start + length),
        st.integers(-30, 80),
        st.integers(1, 15),
    ),
    max_size=15,
)


def union(windows: list[TimeWindow]) -> list[TimeWindow]:
    """The connected stretches of all moments, ends included: those that touch are connected."""
    # halves tell touching from neighbouring
    covered = {half for window in windows for half in range(2 * window.start, 2 * window.end + 1)}
    starts = sorted(half for half in covered if half - 1 not in covered)
    ends = sorted(half for half in covered if half + 1 not in covered)
    return [TimeWindow(start // 2, end // 2) for start, end in zip(starts, ends)]


@given(WINDOWS)
def test_windows_that_meet_become_their_union(windows: list[TimeWindow]) -> None:
    merges = Merges()
    TimeWindow.merge_windows(windows, merges)
    absorbed = {window for group in merges.results.values() for window in group}
    assert sorted([*merges.results, *(set(windows) - absorbed)]) == union(windows)
    for result, group in merges.results.items():
        assert len(group) > 1
        assert union(group) == [result]


@given(st.lists(st.integers(0, 200), max_size=25), st.integers(1, 20), st.randoms())
def test_sessions_end_where_no_record_comes_for_the_gap_in_whatever_order_they_come(
    times: list[int], gap: int, chance: object
) -> None:
    assigner, context = EventTimeSessionWindows(gap), AssignerContext()
    sessions: set[TimeWindow] = set()
    chance.shuffle(times)  # type: ignore[attr-defined]
    for time in times:
        merges = Merges()
        sessions.update(assigner.assign_windows("x", time, context))
        assigner.merge_windows(sessions, merges)
        for result, group in merges.results.items():
            sessions.difference_update(group)
            sessions.add(result)
    expected: list[TimeWindow] = []
    for time in sorted(times):
        if expected and time - (expected[-1].end - gap) <= gap:
            expected[-1] = TimeWindow(expected[-1].start, time + gap)
        else:
            expected.append(TimeWindow(time, time + gap))
    assert sorted(sessions) == expected


def test_nothing_alone_is_merged() -> None:
    for windows in (
        [],
        [TimeWindow(0, 1)],
        [TimeWindow(0, 1), TimeWindow(2, 3)],
        [TimeWindow(0, 1), TimeWindow(0, 1)],
    ):
        merges = Merges()
        TimeWindow.merge_windows(windows, merges)
        assert merges.results == {}


def test_touching_inner_and_chained_windows_merge() -> None:
    merges = Merges()
    windows = [
        TimeWindow(0, 1),
        TimeWindow(1, 2),
        TimeWindow(5, 15),
        TimeWindow(7, 9),
        TimeWindow(10, 11),
        TimeWindow(20, 30),
        TimeWindow(25, 40),
    ]
    EventTimeSessionWindows(1).merge_windows(reversed(windows), merges)
    assert merges.results == {
        TimeWindow(0, 2): windows[:2],
        TimeWindow(5, 15): windows[2:5],
        TimeWindow(20, 40): windows[5:],
    }


def test_an_extractor_object_says_the_gap() -> None:
    class Field(SessionWindowTimeGapExtractor):
        def extract(self, element: tuple[str, int]) -> int:
            return element[1]

    assert DynamicEventTimeSessionWindows(Field()).assign_windows(
        ("x", 30), 5, AssignerContext()
    ) == [TimeWindow(5, 35)]
