"""Whatever comes in, in whatever order calls come back, and wherever the job is taken down and
restored: asynchronous I/O is a map."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import Watermark
from flinkpy.operators.async_io.output_queues import Entry, OrderedQueue, UnorderedQueue
from tests.operators.async_harness import ORDERED, UNORDERED, AsyncHarness

MODES = st.sampled_from([ORDERED, UNORDERED])


def results_of(value: int) -> list[int]:
    """None, one or several."""
    return [value * 10 + number for number in range(value % 3)]


@st.composite
def inputs(draw: st.DrawFn) -> list[int | None]:
    """How many records come in a batch; None: a watermark."""
    return draw(st.lists(st.one_of(st.none(), st.integers(1, 7)), max_size=12))


class Stream:
    """Pushes inputs into a harness; records are numbered, and so is event time."""

    def __init__(self, script: list[int | None]) -> None:
        self.script = list(script)
        self.pushed: list[int | tuple[str, int]] = []  # records, and watermarks as ("w", timestamp)
        self.count = 0

    def push_next(self, harness: AsyncHarness) -> None:
        size = self.script.pop(0)
        if size is None:
            timestamp = 1000 + self.count
            harness.watermark(timestamp)
            self.pushed.append(("w", timestamp))
            return
        values = list(range(self.count, self.count + size))
        self.count += size
        harness.push(values, [1000 + value + 1 for value in values])
        self.pushed += values


def work(
    harness: AsyncHarness, stream: Stream, data: st.DataObject, steps: int | None = None
) -> None:
    """Pushes and answers in turn, as drawn, until all is done or so many steps were."""
    while (stream.script or harness.under_way) and (steps is None or steps > 0):
        steps = None if steps is None else steps - 1
        # a timer upstream does not ask
        may_push = bool(stream.script) and (harness.operator.available or data.draw(st.booleans()))
        if may_push and (not harness.under_way or data.draw(st.booleans())):
            stream.push_next(harness)
        elif harness.under_way:
            chosen = data.draw(
                st.lists(st.sampled_from(harness.under_way), min_size=1, unique=True)
            )
            harness.loop.answer(*chosen, with_=results_of)
        assert len(harness.loop.calls) <= harness.operator.descriptor.capacity


def check(pushed: list[Any], elements: list[Any], mode: Any) -> None:
    """The results are those of a map, and stand on the same side of each watermark as their
    records."""
    records = [value for value in pushed if not isinstance(value, tuple)]
    results = [element for element in elements if isinstance(element, tuple)]
    expected = [(result, 1000 + value + 1) for value in records for result in results_of(value)]
    assert results == expected if mode is ORDERED else Counter(results) == Counter(expected)
    for at, element in enumerate(elements):
        if not isinstance(element, tuple):
            before = pushed[: pushed.index(("w", element))]
            due = {value for value in before if not isinstance(value, tuple) and value % 3}
            assert {
                result // 10
                for result, _ in (one for one in elements[:at] if isinstance(one, tuple))
            } == due


@given(inputs(), MODES, st.integers(1, 6), st.data())
def test_ordered_is_a_map_and_unordered_is_one_between_watermarks(
    script: list[int | None], mode: Any, capacity: int, data: st.DataObject
) -> None:
    harness, stream = AsyncHarness(mode=mode, capacity=capacity), Stream(script)
    work(harness, stream, data)
    assert harness.chain.finish()
    assert harness.operator.available
    check(stream.pushed, harness.elements, mode)
    marks = [one[1] for one in stream.pushed if isinstance(one, tuple)]
    if marks:
        # the last one is never swallowed
        assert [element for element in harness.elements if not isinstance(element, tuple)][
            -1
        ] == marks[-1]


@given(inputs(), MODES, st.integers(1, 6), st.integers(0, 30), st.data())
def test_a_restored_operator_gives_the_results_that_had_not_gone_out(
    script: list[int | None], mode: Any, capacity: int, steps: int, data: st.DataObject
) -> None:
    before, stream = AsyncHarness(mode=mode, capacity=capacity), Stream(script)
    work(before, stream, data, steps)
    after = AsyncHarness(mode=mode, capacity=capacity, restored=before.snapshot())
    work(after, stream, data)
    assert after.chain.finish()
    found = [
        element
        for harness in (before, after)
        for element in harness.elements
        if isinstance(element, tuple)
    ]
    expected = [
        (result, 1000 + value + 1) for value in range(stream.count) for result in results_of(value)
    ]
    assert found == expected if mode is ORDERED else Counter(found) == Counter(expected)


@given(
    st.sampled_from([OrderedQueue, UnorderedQueue]),
    st.lists(st.sampled_from(["put", "mark", "complete", "take"]), max_size=40),
    st.data(),
)
def test_a_queue_counts_what_it_holds_and_forgets_nothing(
    kind: Any, steps: list[str], data: st.DataObject
) -> None:
    queue, held, under_way, taken = kind(), 0, [], 0
    for number, step in enumerate(steps):
        if step == "put":
            entry = Entry(number, None)
            queue.put(entry)
            under_way.append(entry)
            held += 1
        elif step == "mark":
            queue.put_control(Watermark(number))
        elif step == "complete" and under_way:
            queue.complete(under_way.pop(data.draw(st.integers(0, len(under_way) - 1))), [number])
        elif step == "take":
            out = [element for element in queue.take() if isinstance(element, Entry)]
            assert all(entry.results is not None for entry in out)
            held -= len(out)
            taken += len(out)
        assert queue.records == held == sum(isinstance(element, Entry) for element in queue)
    for entry in under_way:
        queue.complete(entry, [])
    assert sum(isinstance(element, Entry) for element in queue.take()) == held
    assert list(queue) == []
    assert queue.records == 0
