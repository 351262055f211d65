"""What a task does with barriers that overtake: at once, or when their time is up."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier, CheckpointOptions
from flinkpy.runtime.alignment import NOTHING, AlignmentStep, BarrierAligner, overtakes_in_s


def barrier(checkpoint_id: int, timeout_ms: int | None = 0) -> CheckpointBarrier:
    return CheckpointBarrier(
        checkpoint_id, 1000, CheckpointOptions(alignment_timeout_ms=timeout_ms)
    )


def test_the_first_barrier_goes_on_at_once_and_the_other_channels_are_recorded() -> None:
    aligner = BarrierAligner(3)
    assert aligner.barrier(1, barrier(1)) == AlignmentStep(
        unblock=(1,), forward=barrier(1), overtakes=True, record=(0, 2)
    )
    assert aligner.blocked == frozenset()
    assert aligner.barrier(0, barrier(1)) == NOTHING
    assert aligner.barrier(2, barrier(1)) == AlignmentStep(complete=True)


def test_with_one_channel_it_is_complete_at_once() -> None:
    assert BarrierAligner(1).barrier(0, barrier(1)) == AlignmentStep(
        unblock=(0,), forward=barrier(1), overtakes=True, complete=True
    )


def test_when_time_is_up_the_blocked_channels_go_on_and_the_others_are_recorded() -> None:
    aligner = BarrierAligner(3)
    assert aligner.barrier(0, barrier(1, 50)) == AlignmentStep(block=(0,))
    assert aligner.time_is_up(1) == AlignmentStep(
        unblock=(0,), forward=barrier(1), overtakes=True, record=(1, 2)
    )
    assert aligner.time_is_up(1) == NOTHING
    # it was sent before its sender's time was up
    assert aligner.barrier(1, barrier(1, 50)) == NOTHING
    assert aligner.barrier(2, barrier(1, 0)) == AlignmentStep(complete=True)


def test_a_barrier_for_whose_sender_time_was_up_ends_the_alignment() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1, 50))
    assert aligner.barrier(1, barrier(1, 0)) == AlignmentStep(
        unblock=(0, 1), forward=barrier(1), overtakes=True, complete=True
    )


def test_an_alignment_that_is_through_in_time_overtakes_nothing() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1, 50))
    assert aligner.barrier(1, barrier(1, 50)) == AlignmentStep(
        unblock=(0, 1), forward=barrier(1, 50)
    )
    assert aligner.time_is_up(1) == NOTHING


def test_kinds_may_alternate_and_a_newer_barrier_of_any_kind_gives_the_older_checkpoint_up() -> (
    None
):
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1, None))
    assert aligner.barrier(1, barrier(2)) == AlignmentStep(
        unblock=(0, 1), forward=barrier(2), overtakes=True, record=(0,)
    )
    assert aligner.barrier(1, barrier(3, None)) == AlignmentStep(block=(1,))  # a savepoint, say
    assert aligner.barrier(0, barrier(2)) == NOTHING
    assert aligner.time_is_up(2) == NOTHING
    assert aligner.barrier(0, barrier(3, None)) == AlignmentStep(
        unblock=(0, 1), forward=barrier(3, None)
    )


def test_late_barriers_of_a_checkpoint_that_is_through_are_nothing() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1))
    aligner.barrier(1, barrier(1))
    assert aligner.barrier(0, barrier(1)) == NOTHING


def test_a_channel_that_ends_or_is_about_to_brings_no_barrier() -> None:
    aligner = BarrierAligner(3)
    assert aligner.end_is_near(2) == NOTHING  # as nothing has overtaken
    aligner.barrier(0, barrier(1))
    assert aligner.end_is_near(2) == NOTHING
    assert aligner.channel_ended(1) == AlignmentStep(complete=True)
    assert aligner.barrier(0, barrier(2)) == AlignmentStep(
        unblock=(0,), forward=barrier(2), overtakes=True, record=(2,)
    )
    assert aligner.channel_ended(2) == AlignmentStep(complete=True)


def test_a_barrier_that_no_channel_brings_overtakes_what_finished_producers_have_left() -> None:
    aligner = BarrierAligner(2)
    assert aligner.barrier_at_end(barrier(1)) == AlignmentStep(
        forward=barrier(1), overtakes=True, record=(0, 1)
    )
    assert aligner.end_is_near(0) == NOTHING
    assert aligner.channel_ended(1) == AlignmentStep(complete=True)
    assert aligner.barrier_at_end(barrier(2, 50)) == NOTHING
    assert aligner.time_is_up(2) == AlignmentStep(forward=barrier(2), overtakes=True, record=(0,))
    assert aligner.channel_ended(0) == AlignmentStep(complete=True)
    assert aligner.barrier_at_end(barrier(3)) == AlignmentStep(forward=barrier(3))


def test_time_counts_from_the_beginning_of_the_checkpoint_and_never_longer_than_the_timeout() -> (
    None
):
    assert overtakes_in_s(barrier(1, None), 0) is None
    assert overtakes_in_s(barrier(1, 0), 0) == 0
    assert overtakes_in_s(barrier(1, 500), 1200) == 0.3
    assert overtakes_in_s(barrier(1, 500), 2000) == 0
    assert overtakes_in_s(barrier(1, 500), 10) == 0.5  # a clock that is behind


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 1 << 40))
def test_state_and_what_is_recorded_are_all_that_came_before_the_barriers(
    channels: int, count: int, seed: int
) -> None:
    """Of each checkpoint that is complete: what was processed before its barrier went on, and what
    was recorded, is exactly what the channels gave before their barriers. Kinds alternate, and time
    is up whenever chance wants."""
    choose = random.Random(seed)
    kinds = [choose.choice([None, 0, 50]) for _ in range(count)]
    queues: list[list[Any]] = [
        [
            item
            for n in range(count)
            for item in (*((channel, n) for _ in range(choose.randrange(3))), barrier(n, kinds[n]))
        ]
        for channel in range(channels)
    ]
    before = {
        n: sorted(
            item
            for queue in queues
            for item in queue[: queue.index(barrier(n, kinds[n]))]
            if isinstance(item, tuple)
        )
        for n in range(count)
    }
    aligner, processed, states = BarrierAligner(channels), [], {}
    recorded: dict[int, list[tuple[int, int]]] = {}
    awaiting: set[int] = set()
    through: list[int] = []
    current = -1
    while any(queues):
        if choose.random() < 0.2:
            step = (
                aligner.time_is_up(choose.randrange(count))
                if kinds[max(0, current)] is not None
                else NOTHING
            )
            channel = None
        else:
            channel = choose.choice(
                [n for n, queue in enumerate(queues) if queue and n not in aligner.blocked]
            )
            item = queues[channel].pop(0)
            if isinstance(item, tuple):
                processed.append(item)
                if channel in awaiting:
                    recorded[current].append(item)
                continue
            step = aligner.barrier(channel, item)
            if item.checkpoint_id == current:
                awaiting.discard(channel)
        if step.forward is not None:
            current = step.forward.checkpoint_id
            states[current], recorded[current], awaiting = list(processed), [], set(step.record)
            if not step.overtakes:
                through.append(current)
        if step.complete:
            through.append(current)
    assert through == sorted(set(through))
    for n in through:
        assert sorted(states[n] + recorded[n]) == before[n]
