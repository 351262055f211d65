"""The threads for files: lanes keep their order, and do not wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from flinkpy.runtime.checkpointing.state_io import MOST_THREADS, StateIO
from tests.waiting import eventually

WAIT_S = 10.0


@pytest.fixture
def files() -> Iterator[StateIO]:
    made = StateIO("a test", 4)
    yield made
    made.stop()


@pytest.mark.finding("gaps G8")
def test_a_subtask_does_not_wait_for_the_files_of_another(files: StateIO) -> None:
    met = threading.Barrier(4)

    def write() -> None:
        met.wait(WAIT_S)  # breaks, if one lane waits for another

    lanes = [files.lane() for _ in range(4)]
    done = [threading.Event() for _ in lanes]
    for lane, event in zip(lanes, done):
        lane.run(write)
        lane.run(event.set)
    assert all(event.wait(WAIT_S) for event in done)
    assert not met.broken


def test_the_actions_of_a_lane_keep_their_order_and_never_overlap(files: StateIO) -> None:
    inside, order, over = threading.Lock(), list[int](), threading.Event()
    lane = files.lane()

    def action(number: int) -> Callable[[], None]:
        def run() -> None:
            assert inside.acquire(blocking=False)
            order.append(number)
            inside.release()
            if number == 99:
                over.set()

        return run

    for number in range(100):
        lane.run(action(number))
        files.lane().run(lambda: None)
    assert over.wait(WAIT_S)
    assert order == list(range(100))


def test_an_action_that_raises_is_logged_and_the_lane_goes_on(
    files: StateIO, caplog: pytest.LogCaptureFixture
) -> None:
    lane, over = files.lane(), threading.Event()
    lane.run(lambda: [][0])
    lane.run(over.set)
    assert over.wait(WAIT_S)
    eventually(lambda: "an action raised" in caplog.text)


def test_what_has_begun_ends_before_the_last_action_and_the_rest_is_dropped(files: StateIO) -> None:
    began, go_on, said = threading.Event(), threading.Event(), list[str]()
    lane = files.lane()

    def write() -> None:
        began.set()
        go_on.wait(WAIT_S)
        said.append("written")

    lane.run(write)
    lane.run(lambda: said.append("never"))
    assert began.wait(WAIT_S)
    files.stop(lambda: said.append("last"))
    assert said == []
    go_on.set()
    eventually(lambda: len(said) == 2)
    lane.run(lambda: said.append("never"))
    assert said == ["written", "last"]


@pytest.mark.parametrize(("slots", "threads"), [(1, 4), (3, 12), (100, MOST_THREADS)])
def test_there_are_four_threads_for_each_slot_and_at_most_32(slots: int, threads: int) -> None:
    files = StateIO.for_slots("a test", slots)
    met, go_on = threading.Semaphore(0), threading.Event()

    def write() -> None:
        met.release()
        go_on.wait(WAIT_S)

    for _ in range(threads + 1):
        files.lane().run(write)
    assert all(met.acquire(timeout=WAIT_S) for _ in range(threads))
    assert not met.acquire(timeout=0.01)
    go_on.set()
    files.stop()
