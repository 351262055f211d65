"""What the frame sampler finds in a thread that works, that waits, and that passes its turn on; and
when it looks at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from flinkpy.actors.inspector.frame_sampler import PATIENCE_S, WINDOW_S, FrameSampler
from flinkpy.actors.inspector.inspector_gateway import StackSample
from flinkpy.core.clock import SYSTEM_CLOCK, ManualClock
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId
from tests.waiting import eventually

JOB, VERTEX = JobId("j"), JobVertexId("v")
ATTEMPT = ExecutionAttemptId(JOB, VERTEX, 3, 0)
DONE = threading.Event()


def works() -> None:
    while not DONE.is_set():
        pass


def waits() -> None:
    DONE.wait()


@contextmanager
def running(function: Callable[[], None]) -> Iterator[int]:
    """A thread in that function; gives its id."""
    DONE.clear()
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    try:
        assert thread.ident is not None
        yield thread.ident
    finally:
        DONE.set()
        thread.join()


@contextmanager
def sampling(
    thread: int | None,
    attempt: ExecutionAttemptId | None = ATTEMPT,
    clock: ManualClock | None = None,
) -> Iterator[FrameSampler]:
    sampler = FrameSampler(
        lambda: [] if thread is None else [(thread, attempt)], clock or SYSTEM_CLOCK
    )
    try:
        yield sampler
    finally:
        sampler.stop()
        eventually(lambda: not sampler.is_looking)


def total(samples: tuple[StackSample, ...]) -> int:
    return sum(sample.count for sample in samples)


def test_a_function_that_works_is_on_the_processor() -> None:
    with running(works) as thread, sampling(thread) as sampler:
        assert sampler.samples_of(JOB, VERTEX) == ()
        eventually(lambda: any(each.on_cpu for each in sampler.samples_of(JOB, VERTEX)))
        [found] = {
            (each.subtask_index, call)
            for each in sampler.samples_of(JOB, VERTEX)
            for call in each.stack
            if ".works:" in call
        }
        assert found[0] == 3


def test_a_function_that_waits_is_not() -> None:
    with running(waits) as thread, sampling(thread) as sampler:
        eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 5)
        assert not any(each.on_cpu for each in sampler.samples_of(JOB, VERTEX))


def test_other_vertices_and_jobs_get_none_of_it_but_what_waits_for_work_is_told_to_all() -> None:
    other = JobVertexId("w")
    with running(waits) as thread:
        with sampling(thread) as sampler:
            eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 1)
            assert sampler.samples_of(JOB, other) == sampler.samples_of(JobId("k"), VERTEX) == ()
        with sampling(thread, attempt=None) as sampler:
            eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 1)
            assert {each.subtask_index for each in sampler.samples_of(JOB, other)} == {None}


def test_it_looks_only_while_somebody_asks() -> None:
    clock = ManualClock()
    with running(waits) as thread, sampling(thread, clock=clock) as sampler:
        idle = sampler.is_looking
        sampler.samples_of(JOB, VERTEX)
        assert (idle, sampler.is_looking) == (False, True)
        eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 1)
        clock.advance(PATIENCE_S)
        eventually(lambda: not sampler.is_looking)
        assert sampler.samples_of(JOB, VERTEX) == ()  # who asks again begins anew
        eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 1)


def test_what_is_old_is_forgotten() -> None:
    clock = ManualClock(1.0)
    attempts = [ATTEMPT]
    with running(waits) as thread:
        sampler = FrameSampler(lambda: [(thread, attempts[0])], clock)
        eventually(lambda: total(sampler.samples_of(JOB, VERTEX)) > 1)
        attempts[0] = ATTEMPT._replace(subtask_index=4)

        def ask_later() -> set[int | None]:
            for _ in range(3):
                clock.advance(WINDOW_S / 3)
                sampler.samples_of(JOB, VERTEX)
            return {each.subtask_index for each in sampler.samples_of(JOB, VERTEX)}

        eventually(lambda: ask_later() == {4})
        sampler.stop()


@pytest.mark.parametrize("thread", [None, 1])
def test_a_thread_that_is_not_there_is_not_looked_at(thread: int | None) -> None:
    with sampling(thread) as sampler:
        sampler.samples_of(JOB, VERTEX)
        assert sampler._look() == []
