"""Barriers that overtake records: what was in flight is in the checkpoint, once, and a job that
goes on from it gives what it gives undisturbed."""

from __future__ import annotations

import random
from contextlib import closing
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.graph.partitioning import PartitioningKind
from tests.checkpoints.in_flight_jobs import Job, Shape, finish_and_check

_K = PartitioningKind
TIMEOUTS = st.sampled_from([None, 0, 0, 0, 20])  # aligned, unaligned, aligned for 20 ms
SHAPES = st.builds(
    Shape,
    st.integers(1, 2),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([_K.HASH, _K.REBALANCE]),
    st.sampled_from([_K.REBALANCE, _K.GLOBAL, _K.BROADCAST, _K.SHUFFLE]),
    st.integers(1, 60),
)


def run_until_it_dies(
    job: Job, choose: random.Random, timeouts: list[int | None], steps: int
) -> None:
    """Checkpoints of all kinds, some given up; then the job is gone."""
    for _ in range(steps):
        if job.is_done:
            return
        job.step()
        if job.pending is None:
            if choose.random() < 0.05:
                job.begin_checkpoint(choose.choice(timeouts))
        elif choose.random() < 0.002:
            job.abort()
        if choose.random() < 0.05:
            job.clock.advance(0.005)


@given(
    SHAPES,
    st.lists(TIMEOUTS, min_size=1, max_size=3),
    st.lists(st.integers(10, 1500), min_size=1, max_size=2),
    st.integers(0, 1 << 40),
    st.booleans(),
)
def test_a_job_that_died_gives_what_it_gives_undisturbed(
    shape: Shape, timeouts: list[int | None], lives: list[int], seed: int, is_rescaled: bool
) -> None:
    choose = random.Random(seed)
    job = Job(shape, choose)
    for attempt, steps in enumerate(lives, 1):
        with closing(job):
            run_until_it_dies(job, choose, timeouts, steps)
            assert job.failures == []
        if is_rescaled and shape.second is not _K.BROADCAST:
            shape = replace(
                shape,
                parallelism=(choose.randint(1, 3), choose.randint(1, 3), choose.randint(1, 3)),
            )
        if job.completed:
            job = Job(shape, choose, job.completed[-1], attempt, committed=job.committed_then)
        else:
            job = Job(shape, choose, job.start_from, attempt, committed=job.committed)
    with closing(job):
        finish_and_check(job)
