from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from flinkpy.core.errors import ConfigurationError, EngineError, ResourceUnavailableError
from flinkpy.core.ids import JobId
from flinkpy.network.flow.segments import LocalBufferPool, NetworkBufferPool

TOTAL = 40


class Pools(RuleBasedStateMachine):
    """Pools come and go, take and give back; the books always balance."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = NetworkBufferPool(TOTAL)
        self.locals: list[LocalBufferPool] = []

    @rule(minimum=st.integers(1, 8), extra=st.integers(0, 60))
    def create(self, minimum: int, extra: int) -> None:
        if minimum > self.pool.unreserved:
            with pytest.raises(
                ResourceUnavailableError, match=r"taskmanager\.memory\.network\.size"
            ):
                self.pool.create_pool("one too many", minimum, minimum + extra)
        else:
            self.locals.append(
                self.pool.create_pool(f"pool {len(self.locals)}", minimum, minimum + extra)
            )

    @rule(data=st.data(), count=st.integers(1, 20))
    def take(self, data: st.DataObject, count: int) -> None:
        if self.locals:
            pool = data.draw(st.sampled_from(self.locals))
            before, fits = pool.in_use, count <= pool.available
            assert pool.take_segments(count) is fits
            assert pool.in_use == before + (count if fits else 0)

    @rule(data=st.data(), count=st.integers(1, 20))
    def return_segments(self, data: st.DataObject, count: int) -> None:
        if self.locals:
            pool = data.draw(st.sampled_from(self.locals))
            pool.return_segments(min(count, pool.in_use))

    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        if self.locals:
            pool = data.draw(st.sampled_from(self.locals))
            self.locals.remove(pool)
            pool.close_pool()
            pool.close_pool()
            assert not pool.take_segments(1)

    @invariant()
    def the_sum_of_what_is_lent_is_what_is_in_use(self) -> None:
        statistics = self.pool.statistics()
        assert statistics.in_use == sum(pool.in_use for pool in self.locals) <= TOTAL
        assert statistics.pools == len(self.locals)

    @invariant()
    def sizes_lie_between_minimum_and_maximum_and_fit_into_the_whole(self) -> None:
        assert sum(pool.size for pool in self.locals) <= TOTAL
        for pool in self.locals:
            assert pool.minimum <= pool.size <= pool.maximum

    def teardown(self) -> None:
        for pool in self.locals:
            pool.close_pool()
        assert self.pool.in_use == 0


TestPools = Pools.TestCase
TestPools.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@given(st.integers(2, 20))
def test_equal_pools_get_equal_shares(count: int) -> None:
    pool = NetworkBufferPool(1000)
    sizes = [made.size for made in [pool.create_pool(str(i), 1, 1000) for i in range(count)]]
    assert sum(sizes) == 1000
    assert max(sizes) - min(sizes) <= 1


def test_a_pool_gets_in_proportion_to_what_it_can_use_and_more_when_others_go() -> None:
    pool = NetworkBufferPool(100)
    small, large = pool.create_pool("small", 10, 20), pool.create_pool("large", 10, 1000)
    assert (small.size, large.size) == (18, 82)
    small.close_pool()
    assert large.size == 100


def test_who_found_no_room_is_told_when_segments_come_back() -> None:
    pool = NetworkBufferPool(4)
    local, told = pool.create_pool("gate", 1, 4), []
    local.on_room = lambda: told.append(local.available)
    assert local.take_segments(4)
    local.return_segments(1)
    assert told == []
    assert not local.take_segments(2)
    local.return_segments(1)
    assert told == [2]


def test_who_starves_because_others_hold_all_is_told_when_they_give_back() -> None:
    pool = NetworkBufferPool(10)
    first = pool.create_pool("first", 1, 10)
    assert first.take_segments(10)
    second, told = pool.create_pool("second", 1, 10), []
    second.on_room = lambda: told.append(second.available)
    assert not second.take_segments(1)
    first.return_segments(3)
    assert told == [3]
    assert second.take_segments(3)
    assert not first.take_segments(3)  # it has shrunk to its share, and still holds more


def test_giving_back_more_than_was_taken_is_a_bug() -> None:
    local = NetworkBufferPool(4).create_pool("gate", 1, 4)
    with pytest.raises(EngineError, match="gate gives back 1 segments and holds 0"):
        local.return_segments(1)


def test_a_job_that_takes_all_memory_itself_is_refused_for_good_and_one_beside_others_may_try_again() -> (
    None
):
    pool, large, small = NetworkBufferPool(10), JobId("large"), JobId("small")
    for subtask in range(4):
        pool.create_pool(f"subtask {subtask}", 2, 2, large)
    with pytest.raises(ConfigurationError, match=r"needs at least 3 segments, 2 of 10"):
        pool.create_pool("one too many", 3, 3, large)
    with pytest.raises(ResourceUnavailableError, match=r"needs at least 3 segments, 2 of 10"):
        pool.create_pool("the other job's", 3, 3, small)
    with pytest.raises(ConfigurationError, match="at least 11 segments"):
        pool.create_pool("the other job's", 11, 11, small)
