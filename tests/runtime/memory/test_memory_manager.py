"""The ledger of a slot: what operators reserve is within their shares, and comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import ConfigurationError, EngineError
from flinkpy.core.options.memory_sizes import CONSUMER_WEIGHTS, MemoryKind, consumer_weights
from flinkpy.graph.resources import ManagedMemoryUse
from flinkpy.operators.rows.stateless import MapOperator
from flinkpy.runtime.memory.memory_manager import MemoryManager, MemoryOwner, MemoryStatistics
from flinkpy.runtime.memory.slots_memory import SlotsMemory, WorkerSlots
from flinkpy.runtime.memory.task_memory import SlotMemory, TaskMemory
from tests.memory_leaks import LEAKS

MB = 1 << 20
OPERATOR, STATE, PYTHON = MemoryKind
WEIGHTS = consumer_weights({})
OWNERS = 10


def sorts(weight: int = 1) -> MapOperator:
    operator = MapOperator(str)
    operator.memory_weights = {OPERATOR: weight}
    return operator


@given(
    st.integers(0, 1000),
    st.lists(st.integers(0, 300), min_size=OWNERS, max_size=OWNERS),
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "reserve", "reserve", "release", "release_all"]),
            st.integers(0, OWNERS - 1),
            st.integers(0, 200),
        ),
        max_size=80,
    ),
)
def test_ten_owners_never_have_more_than_their_shares_nor_less_than_nothing(
    size: int, shares: list[int], steps: list[tuple[str, int, int]]
) -> None:
    manager = MemoryManager(size)
    owners = [MemoryOwner(f"o{i}", OPERATOR, share) for i, share in enumerate(shares)]
    held = [0] * OWNERS
    for what, who, amount in steps:
        owner = owners[who]
        if what == "reserve":
            fits = held[who] + amount <= shares[who] and sum(held) + amount <= size
            assert manager.reserve(owner, amount) is fits
            held[who] += amount * fits
        elif what == "release_all":
            assert manager.release_all(owner) == held[who]
            held[who] = 0
        elif amount > held[who]:
            with pytest.raises(EngineError, match="gives back"):
                manager.release(owner, amount)
        else:
            manager.release(owner, amount)
            held[who] -= amount
        manager.check_invariants()
        assert [manager.reserved_by(each) for each in owners] == held
    used = sum(each > 0 for each in held)
    assert manager.statistics() == MemoryStatistics(size, sum(held), used)


def test_nobody_reserves_less_than_nothing() -> None:
    owner = MemoryOwner("sort", OPERATOR, 10)
    for call in (MemoryManager(10).reserve, MemoryManager(10).release):
        with pytest.raises(EngineError, match="sort asks for -1 bytes"):
            call(owner, -1)


@pytest.mark.parametrize(
    ("kinds", "shares"),
    [
        ({OPERATOR: 3}, {OPERATOR: 1700, STATE: 0}),
        ({OPERATOR: 1, STATE: 5}, {OPERATOR: 850, STATE: 850}),
        ({OPERATOR: 1, PYTHON: 1}, {OPERATOR: 1190, PYTHON: 510}),
        ({OPERATOR: 1, STATE: 1, PYTHON: 1}, {OPERATOR: 700, STATE: 700, PYTHON: 300}),
        ({OPERATOR: 1, STATE: 0}, {OPERATOR: 1700}),
        ({}, {OPERATOR: 0}),
    ],
)
def test_kinds_that_a_slot_contains_share_it_by_flinks_weights(
    kinds: dict[MemoryKind, int], shares: dict[MemoryKind, int]
) -> None:
    use = ManagedMemoryUse(kinds)
    for kind, share in shares.items():
        assert use.share(1700, kind, kinds.get(kind, 0), WEIGHTS) == share


def test_operators_of_a_slot_share_by_their_weights() -> None:
    manager = MemoryManager(100 * MB)
    use = ManagedMemoryUse({OPERATOR: 4})
    memory = TaskMemory(SlotMemory(manager), use)
    large, small = memory.of_operator("large", sorts(3)), memory.of_operator("small", sorts())
    assert large.share_of(OPERATOR) == 75 * MB
    assert small.share_of(OPERATOR) == 25 * MB
    assert small.share_of(STATE) == 0
    assert not small.reserve(26 * MB)
    assert small.reserve(25 * MB)
    assert not small.reserve(1, STATE)
    assert large.reserve(75 * MB)
    small.release(25 * MB)
    assert not large.reserve(1)
    assert [str(leak) for leak in memory.release_all()] == [
        f"large ended with {75 * MB} bytes of OPERATOR memory reserved"
    ]
    assert manager.statistics() == MemoryStatistics(100 * MB, 0, 0)
    LEAKS.clear()


def test_slots_divide_what_their_worker_manages() -> None:
    slots = SlotsMemory(WorkerSlots(4, 100))
    assert slots.of_slot(0, ManagedMemoryUse(slots=7)).manager.size == 25
    assert (
        slots.of_slot(0, ManagedMemoryUse()).manager is slots.of_slot(0, ManagedMemoryUse()).manager
    )
    assert (
        slots.of_slot(1, ManagedMemoryUse()).manager
        is not slots.of_slot(0, ManagedMemoryUse()).manager
    )
    owner = MemoryOwner("sort", OPERATOR, 25)
    assert slots.of_slot(3, ManagedMemoryUse()).manager.reserve(owner, 20)
    assert (slots.reserved, slots.total) == (20, 100)


def test_where_slots_cost_nothing_a_job_divides_the_memory_by_those_that_it_has() -> None:
    slots = SlotsMemory(WorkerSlots(64, 100, memory_by_job=True))
    assert slots.of_slot(0, ManagedMemoryUse(slots=2)).manager.size == 50
    assert slots.of_slot(0, ManagedMemoryUse(slots=5)).manager.size == 20


def test_too_little_memory_names_the_option() -> None:
    memory = TaskMemory(SlotMemory(MemoryManager(MB)), ManagedMemoryUse({OPERATOR: 4}))
    with pytest.raises(
        ConfigurationError,
        match=r"Sort has 256 KB of managed memory, and needs 1,024 KB: its slot has 1,024 KB.*"
        r"raise taskmanager\.memory\.managed\.size at least 4 times",
    ):
        memory.of_operator("Sort", sorts())
    nothing = SlotMemory(MemoryManager(MB), {STATE: 1})
    with pytest.raises(ConfigurationError, match=r"consumer-weights leaves it no memory"):
        TaskMemory(nothing, ManagedMemoryUse({OPERATOR: 1})).of_operator("Sort", sorts())
    empty = TaskMemory(SlotMemory(MemoryManager(0)), ManagedMemoryUse({OPERATOR: 1}))
    with pytest.raises(
        ConfigurationError, match=r"set taskmanager\.memory\.managed\.size or .* 0$"
    ):
        empty.of_operator("Sort", sorts())


@pytest.mark.parametrize("text", ["OPERATOR", "OPERATOR:x", "JAVA:3", "OPERATOR:-1", ""])
def test_what_is_no_weight_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"consumer-weights: .* is not a kind"):
        consumer_weights({CONSUMER_WEIGHTS.key: text})
