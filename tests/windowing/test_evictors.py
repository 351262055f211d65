"""What is left out of a window."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.time import Time
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.window import (
    CountEvictor,
    DeltaEvictor,
    Evictor,
    GlobalWindow,
    TimeEvictor,
    TimestampedValue,
)

VALUES = st.lists(
    st.builds(TimestampedValue, st.integers(-20, 20), st.one_of(st.none(), st.integers(0, 50))),
    max_size=15,
)


def evicted(
    evictor: Evictor[Any, Any], elements: list[TimestampedValue]
) -> tuple[list[TimestampedValue], list[TimestampedValue]]:
    """What is left before and behind the function."""
    left = list(elements)
    context: Any = None  # these ask it nothing
    evictor.evict_before(left, len(left), GlobalWindow.get(), context)
    before = list(left)
    evictor.evict_after(left, len(left), GlobalWindow.get(), context)
    return before, left


@given(VALUES, st.integers(1, 20))
def test_a_count_evictor_keeps_the_last_so_many(
    elements: list[TimestampedValue], count: int
) -> None:
    kept = elements[max(0, len(elements) - count) :]
    assert evicted(CountEvictor.of(count), elements) == (kept, kept)
    assert evicted(CountEvictor.of(count, True), elements) == (elements, kept)


@given(VALUES, st.integers(1, 40))
def test_a_time_evictor_keeps_what_is_newer_than_the_latest_less_its_span(
    elements: list[TimestampedValue], span: int
) -> None:
    latest = max((each.timestamp for each in elements if each.timestamp is not None), default=0)
    kept = [each for each in elements if each.timestamp is None or latest - each.timestamp < span]
    assert evicted(TimeEvictor.of(Time.milliseconds(span)), elements) == (kept, kept)
    assert evicted(TimeEvictor.of(Time.milliseconds(span), True), elements) == (elements, kept)


@given(VALUES, st.integers(1, 15))
def test_a_delta_evictor_keeps_what_is_near_the_last(
    elements: list[TimestampedValue], threshold: int
) -> None:
    kept = [each for each in elements if abs(each.value - elements[-1].value) < threshold]
    assert evicted(DeltaEvictor.of(threshold, lambda old, last: abs(old - last)), elements) == (
        kept,
        kept,
    )


def test_mistakes_are_refused() -> None:
    with pytest.raises(ProgramError, match="number of records kept"):
        CountEvictor.of(0)
    with pytest.raises(ProgramError, match="the time kept"):
        TimeEvictor.of(Time.seconds(-1))
    with pytest.raises(ProgramError, match="delta function"):
        DeltaEvictor.of(1, "distance")


def test_an_object_with_get_delta_is_a_delta_function() -> None:
    class Distance:
        def get_delta(self, old: int, new: int) -> int:
            return new - old

    elements = [TimestampedValue(value, None) for value in (1, 5, 9)]
    assert evicted(DeltaEvictor.of(5, Distance()), elements)[0] == elements[1:]
