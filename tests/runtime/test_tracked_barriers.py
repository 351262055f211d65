"""AT_LEAST_ONCE: barriers are counted, no channel waits, nothing is lost and something may come
twice."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier, CheckpointOptions
from flinkpy.runtime.alignment import NOTHING, AlignmentStep, BarrierAligner

pytestmark = pytest.mark.finding("gaps G10")


def barrier(checkpoint_id: int, *, is_tracked: bool = True) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0, CheckpointOptions(is_tracked=is_tracked))


def test_no_channel_waits_and_the_barrier_goes_on_with_the_last() -> None:
    aligner = BarrierAligner(2)
    assert aligner.barrier(1, barrier(1)) == NOTHING
    assert aligner.blocked == frozenset()
    assert aligner.barrier(0, barrier(1)) == AlignmentStep(forward=barrier(1))
    assert aligner.barrier(0, barrier(1)) == NOTHING  # doubled by nobody, and told by nobody


def test_several_checkpoints_are_awaited_at_a_time_and_one_that_is_through_gives_older_ones_up() -> (
    None
):
    aligner = BarrierAligner(3)
    for number in (1, 2, 3):
        assert aligner.barrier(0, barrier(number)) == NOTHING
    assert aligner.barrier(1, barrier(1)) == NOTHING
    assert aligner.barrier(2, barrier(1)).forward == barrier(1)
    # the third channel has no barrier 2: that checkpoint was aborted behind it
    aligner.barrier(1, barrier(2))
    assert aligner.barrier(1, barrier(3)) == NOTHING
    assert aligner.barrier(2, barrier(3)).forward == barrier(3)
    assert aligner.barrier(2, barrier(2)) == NOTHING


def test_a_channel_that_ends_counts_for_all_of_them() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1))
    aligner.barrier(0, barrier(2))
    assert aligner.channel_ended(1) == AlignmentStep(forward=barrier(2))


def test_savepoints_are_aligned_and_each_kind_gives_older_ones_of_the_other_up() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1))
    savepoint = barrier(2, is_tracked=False)
    assert aligner.barrier(0, savepoint) == AlignmentStep(block=(0,))
    assert aligner.barrier(1, barrier(1)) == NOTHING
    assert aligner.barrier(1, barrier(3)) == AlignmentStep(unblock=(0,))
    assert aligner.barrier(1, savepoint) == NOTHING
    assert aligner.barrier(0, barrier(3)) == AlignmentStep(forward=barrier(3))


@given(st.integers(1, 4), st.integers(1, 4), st.randoms(use_true_random=False))
def test_what_came_before_the_barriers_is_in_the_checkpoint_in_any_interleaving(
    channels: int, count: int, choose: random.Random
) -> None:
    queues = [
        [item for number in range(count) for item in ((channel, number), barrier(number))]
        for channel in range(channels)
    ]
    aligner, seen, through = BarrierAligner(channels), set[tuple[int, int]](), list[int]()
    while any(queues):
        # any: none ever waits
        channel = choose.choice([each for each, queue in enumerate(queues) if queue])
        item = queues[channel].pop(0)
        if isinstance(item, tuple):
            seen.add(item)
            continue
        step = aligner.barrier(channel, item)
        assert (step.block, step.overtakes, step.record) == ((), False, ())
        if step.forward is not None:
            number = step.forward.checkpoint_id
            assert {
                (each, before) for each in range(channels) for before in range(number + 1)
            } <= seen
            through.append(number)
    assert through == list(range(count))
