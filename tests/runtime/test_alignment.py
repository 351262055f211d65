"""Barrier alignment in any interleaving."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.runtime.alignment import NOTHING, AlignmentStep, BarrierAligner


def barrier(checkpoint_id: int) -> CheckpointBarrier:
    return CheckpointBarrier(checkpoint_id, 0)


def test_one_channel_needs_no_waiting() -> None:
    assert BarrierAligner(1).barrier(0, barrier(1)) == AlignmentStep(
        unblock=(0,), forward=barrier(1)
    )


def test_a_channel_waits_for_the_others() -> None:
    aligner = BarrierAligner(2)
    assert aligner.barrier(1, barrier(1)) == AlignmentStep(block=(1,))
    assert aligner.blocked == {1}
    assert aligner.barrier(0, barrier(1)) == AlignmentStep(unblock=(0, 1), forward=barrier(1))
    assert aligner.blocked == frozenset()


def test_a_newer_barrier_gives_the_older_checkpoint_up() -> None:
    aligner = BarrierAligner(3)
    aligner.barrier(0, barrier(1))
    aligner.barrier(1, barrier(1))
    assert aligner.barrier(2, barrier(2)) == AlignmentStep(unblock=(0, 1), block=(2,))
    assert aligner.barrier(0, barrier(1)) == NOTHING
    aligner.barrier(0, barrier(2))
    assert aligner.barrier(1, barrier(2)).forward == barrier(2)


def test_a_channel_that_ends_lets_the_others_go() -> None:
    aligner = BarrierAligner(2)
    aligner.barrier(0, barrier(1))
    assert aligner.channel_ended(1) == AlignmentStep(unblock=(0,), forward=barrier(1))
    assert aligner.barrier(0, barrier(2)).forward == barrier(2)


@given(st.integers(1, 5), st.integers(1, 4), st.integers(0, 2), st.randoms(use_true_random=False))
def test_every_barrier_goes_out_once_behind_all_that_came_before_it(
    channels: int, count: int, ending: int, choose: random.Random
) -> None:
    """Channels hold records between barriers; only those not blocked may be read. Some end early,
    after their last barrier."""
    queues = [
        [item for n in range(count) for item in (f"r{n}", barrier(n))] + ["tail", "end"]
        for _ in range(channels)
    ]
    for queue in queues[: min(ending, channels - 1)]:
        del queue[choose.randrange(0, len(queue) - 1) : -1]
    aligner = BarrierAligner(channels)
    out: list[str | int] = []
    while any(queues):
        readable = [n for n, queue in enumerate(queues) if queue and n not in aligner.blocked]
        assert readable, "deadlock"
        channel = choose.choice(readable)
        item = queues[channel].pop(0)
        if item == "end":
            step = aligner.channel_ended(channel)
        elif isinstance(item, CheckpointBarrier):
            step = aligner.barrier(channel, item)
        else:
            out.append(item)
            continue
        if step.forward is not None:
            out.append(step.forward.checkpoint_id)
    barriers = [item for item in out if isinstance(item, int)]
    assert barriers == list(range(count))
    for n in range(count):
        at = out.index(n)
        assert all(
            item == f"r{n}" or int(str(item).strip("r")) <= n
            for item in out[:at]
            if item != "tail" and isinstance(item, str)
        )
        assert f"r{n}" not in out[at:]
