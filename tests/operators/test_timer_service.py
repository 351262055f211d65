"""Timers of keyed functions: what is registered, deleted, fired, saved and shared out. What is
expected follows from Flink's documentation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.common.typeinfo import Types
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP, CheckpointBarrier, Watermark
from flinkpy.core.errors import UserCodeError
from flinkpy.core.keys import key_group, key_group_range
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import (
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    RuntimeContext,
    TimeDomain,
)
from flinkpy.operators.process.process_operators import KeyedCoProcessOperator, KeyedProcessOperator
from flinkpy.state.descriptors import ValueStateDescriptor
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import TASK, ChainHarness, linear
from tests.state_bytes import keyed_share

FIRST = KeySpec(lambda command: command[0])
BARRIER = CheckpointBarrier(1, 0)
EVENT, PROCESSING = TimeDomain.EVENT_TIME, TimeDomain.PROCESSING_TIME
Fired = list[tuple[Any, TimeDomain, int]]


class Commanded(KeyedProcessFunction):
    """A record is (key, call of the timer service, timestamp); timers tell (key, domain,
    timestamp), and then do what ``then`` says."""

    def __init__(
        self, then: Callable[[Any, int], Iterable[tuple[str, int]]] = lambda key, timestamp: ()
    ) -> None:
        self.then = then

    def process_element(self, value: Any, ctx: Any) -> None:
        getattr(ctx.timer_service(), value[1])(value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        assert ctx.timestamp() == timestamp
        yield ctx.get_current_key(), ctx.time_domain(), timestamp
        for call, when in self.then(ctx.get_current_key(), timestamp):
            getattr(ctx.timer_service(), call)(when)


REGISTER, DELETE = "register_event_time_timer", "delete_event_time_timer"
REGISTER_CLOCK, DELETE_CLOCK = "register_processing_time_timer", "delete_processing_time_timer"


class Timers:
    """One subtask of a keyed function, in milliseconds of its clock."""

    def __init__(
        self, function: Any = None, saved: SavedState | None = None, clock_ms: int = 0
    ) -> None:
        self.operator = KeyedProcessOperator(function or Commanded(), FIRST)
        self.harness = ChainHarness(linear(self.operator), open_it=False)
        self.harness.timers.clock.advance(clock_ms / 1000)
        self.operator.initialize_state(saved)
        self.harness.chain.open()
        self._seen = 0

    def __call__(self, *commands: tuple[Any, str, int]) -> Timers:
        self.harness.push(commands)
        return self

    def register(self, key: Any, *timestamps: int) -> Timers:
        return self(*[(key, REGISTER, when) for when in timestamps])

    def watermark(self, timestamp: int) -> Fired:
        self.harness.control(Watermark(timestamp))
        return self.new()

    def clock(self, milliseconds: int) -> Fired:
        """The clock goes on, millisecond by millisecond."""
        for _ in range(milliseconds):
            self.harness.timers.advance(0.001)
        return self.new()

    def new(self) -> Fired:
        seen, self._seen = self._seen, len(self.harness.output)
        return self.harness.output[seen:]

    @property
    def now(self) -> int:
        return self.harness.timers.now_ms()

    @property
    def of_the_task(self) -> int:
        """How many timers the task itself has for them."""
        return len(self.harness.timers.pending)

    def saved(self) -> SavedState:
        saved = self.operator.freeze_state(BARRIER).write()
        assert saved is not None
        return saved


# -- event time ------------------------------------------------------------------------------------


def test_a_timer_fires_when_the_watermark_reaches_it_and_not_before() -> None:
    timers = Timers().register("a", 10)
    assert timers.watermark(9) == []
    assert timers.watermark(10) == [("a", EVENT, 10)]
    assert timers.watermark(11) == []


def test_one_watermark_fires_all_it_has_passed_in_the_order_of_time_across_keys() -> None:
    timers = Timers().register("a", 30, 10).register("b", 20).register("c", 40, 5)
    assert timers.watermark(35) == [
        ("c", EVENT, 5),
        ("a", EVENT, 10),
        ("b", EVENT, 20),
        ("a", EVENT, 30),
    ]
    assert timers.watermark(40) == [("c", EVENT, 40)]


def test_a_timer_that_is_registered_again_is_one_timer_for_each_key() -> None:
    timers = Timers().register("a", 10, 10).register("b", 10).register("a", 10)
    assert sorted(timers.watermark(10)) == [("a", EVENT, 10), ("b", EVENT, 10)]
    assert timers.register("a", 10).watermark(11) == [("a", EVENT, 10)], (
        "it had fired: this is a new one"
    )


def test_deleting_takes_away_the_timer_of_that_key_and_time_only() -> None:
    timers = Timers().register("a", 10, 20).register("b", 10)
    timers(("a", DELETE, 10), ("a", DELETE, 15), ("c", DELETE, 10))
    assert timers.watermark(20) == [("b", EVENT, 10), ("a", EVENT, 20)]


def test_what_was_deleted_can_be_registered_again() -> None:
    timers = Timers().register("a", 10)(("a", DELETE, 10)).register("a", 10)
    assert timers.watermark(10) == [("a", EVENT, 10)]


def test_a_timer_of_the_past_fires_with_the_next_watermark() -> None:
    timers = Timers()
    assert timers.watermark(100) == []
    assert timers.register("a", 50, 100).new() == []
    assert timers.watermark(101) == [("a", EVENT, 50), ("a", EVENT, 100)]


def test_timers_may_lie_before_1970_and_at_the_end_of_time() -> None:
    timers = Timers().register("a", -7, MAX_TIMESTAMP, MIN_TIMESTAMP + 1)
    assert timers.watermark(-1) == [("a", EVENT, MIN_TIMESTAMP + 1), ("a", EVENT, -7)]
    assert timers.watermark(MAX_TIMESTAMP - 1) == []
    assert timers.watermark(MAX_TIMESTAMP) == [("a", EVENT, MAX_TIMESTAMP)]


def test_keys_need_no_order_among_them() -> None:
    keys: list[Any] = ["a", 1, None, ("t", 2), 2.5, frozenset({1}), b"x"]
    timers = Timers()
    for key in keys:
        timers.register(key, 10)
    assert {key for key, _, _ in timers.watermark(10)} == set(keys)


def test_keys_that_are_equal_share_their_timers() -> None:
    timers = Timers().register(1, 10).register(1.0, 10)((True, DELETE, 20))
    assert timers.watermark(10) == [(1, EVENT, 10)]


# -- timers that register and delete timers --------------------------------------------------------


def test_a_timer_registered_by_a_firing_one_fires_with_the_same_watermark_if_that_has_passed_it() -> (
    None
):
    timers = (
        Timers(Commanded(lambda key, timestamp: [(REGISTER, timestamp + 10)]))
        .register("a", 10)
        .register("b", 25)
    )
    assert timers.watermark(29) == [("a", EVENT, 10), ("a", EVENT, 20), ("b", EVENT, 25)]
    assert sorted(timers.watermark(35)) == [("a", EVENT, 30), ("b", EVENT, 35)]


def test_a_firing_timer_that_registers_one_before_itself_has_it_fired_next() -> None:
    timers = Timers(
        Commanded(lambda key, timestamp: [(REGISTER, 3)] if timestamp == 10 else [])
    ).register("a", 10, 11)
    assert timers.watermark(20) == [("a", EVENT, 10), ("a", EVENT, 3), ("a", EVENT, 11)]


def test_a_firing_timer_can_delete_one_that_is_due_too() -> None:
    timers = (
        Timers(Commanded(lambda key, timestamp: [(DELETE, timestamp + 1)]))
        .register("a", 10, 11, 12)
        .register("b", 11)
    )
    assert timers.watermark(20) == [("a", EVENT, 10), ("b", EVENT, 11), ("a", EVENT, 12)]


def test_a_firing_timer_is_not_registered_any_more_so_it_can_register_itself() -> None:
    again = iter([[(REGISTER, 10)], []])
    timers = Timers(Commanded(lambda key, timestamp: next(again))).register("a", 10)
    assert timers.watermark(10) == [("a", EVENT, 10), ("a", EVENT, 10)]


# -- what a function is told -----------------------------------------------------------------------


class Watching(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any]:
        ctx.timer_service().register_event_time_timer(value[1])
        yield "record", ctx.timer_service().current_watermark(), ctx.timestamp()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "timer", ctx.timer_service().current_watermark(), ctx.timestamp()


def test_the_current_watermark_is_the_last_one_also_for_a_timer_it_fires() -> None:
    harness = ChainHarness(linear(KeyedProcessOperator(Watching(), FIRST)))
    harness.push([("a", 10)], [7])
    harness.control(Watermark(25))
    harness.push([("a", 99)], [8])
    assert harness.output == [("record", MIN_TIMESTAMP, 7), ("timer", 25, 10), ("record", 25, 8)]


def test_results_of_event_timers_carry_their_time_and_those_of_the_clock_carry_none() -> None:
    timers = Timers()
    timers(("a", REGISTER, 10), ("a", REGISTER_CLOCK, timers.now + 1))
    timers.watermark(50)
    timers.clock(3)
    assert [stamp for _, stamp in timers.harness.writers[0].stamped] == [10, None]


class Counting(KeyedProcessFunction):
    """A timer adds its time to what its key has so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.total = runtime_context.get_state(ValueStateDescriptor("total", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[2])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        self.total.update((self.total.value() or 0) + timestamp)
        yield ctx.get_current_key(), self.total.value()


def test_a_timer_finds_the_state_of_its_own_key_whatever_record_came_last() -> None:
    timers = Timers(Counting()).register("a", 1, 10).register("b", 2, 20).register("c", 300)
    timers.watermark(20)
    assert timers.harness.output == [("a", 1), ("b", 2), ("a", 11), ("b", 22)]


# -- the clock -------------------------------------------------------------------------------------


def test_both_kinds_of_time_have_timers_of_their_own() -> None:
    timers = Timers()
    at = timers.now + 2
    timers(
        ("a", REGISTER, at),
        ("a", REGISTER_CLOCK, at),
        ("b", REGISTER, at),
        ("b", REGISTER_CLOCK, at),
    )
    timers(("a", DELETE, at), ("b", DELETE_CLOCK, at))
    assert timers.clock(5) == [("a", PROCESSING, at)]
    assert timers.watermark(at) == [("b", EVENT, at)]


def test_timers_of_the_clock_fire_in_the_order_of_time_once_for_each_key() -> None:
    timers = Timers()
    at = timers.now
    timers(
        *[("a", REGISTER_CLOCK, at + later) for later in (9, 3, 3, 6)],
        ("b", REGISTER_CLOCK, at + 3),
        ("a", DELETE_CLOCK, at + 6),
    )
    fired = timers.clock(20)
    assert [when - at for _, _, when in fired] == [3, 3, 9]
    assert {(key, when - at) for key, _, when in fired} == {("a", 3), ("b", 3), ("a", 9)}


def test_the_task_has_one_timer_however_many_there_are() -> None:
    timers = Timers()
    at = timers.now
    assert timers.of_the_task == 0
    timers(*[(key, REGISTER_CLOCK, at + later) for key in "abc" for later in (10, 20, 30)])
    assert timers.of_the_task == 1
    assert len(timers.clock(15)) == 3
    assert timers.of_the_task == 1
    assert len(timers.clock(20)) == 6
    assert timers.of_the_task == 0
    timers(("a", REGISTER_CLOCK, at + 100))
    assert timers.of_the_task == 1


def test_an_earlier_timer_is_not_kept_waiting_by_a_later_one() -> None:
    timers = Timers()
    at = timers.now
    timers(("a", REGISTER_CLOCK, at + 20))
    timers(("a", REGISTER_CLOCK, at + 10))
    assert timers.of_the_task == 1
    assert timers.clock(12) == [("a", PROCESSING, at + 10)]
    assert timers.clock(10) == [("a", PROCESSING, at + 20)]


def test_a_timer_of_the_clock_that_registers_the_next_one_leaves_one_behind() -> None:
    timers = Timers(Commanded(lambda key, timestamp: [(REGISTER_CLOCK, timestamp + 10)]))
    at = timers.now
    timers(("a", REGISTER_CLOCK, at + 10))
    for turn in range(1, 4):
        assert timers.clock(10 + (turn == 1)) == [("a", PROCESSING, at + 10 * turn)]
        assert timers.of_the_task == 1


def test_deleting_the_earliest_timer_of_the_clock_leaves_the_others_their_time() -> None:
    timers = Timers()
    at = timers.now
    timers(("a", REGISTER_CLOCK, at + 5), ("a", REGISTER_CLOCK, at + 9))
    timers(("a", DELETE_CLOCK, at + 5))
    assert timers.clock(8) == []
    assert timers.clock(4) == [("a", PROCESSING, at + 9)]


def test_a_closed_function_hears_no_more_of_the_clock() -> None:
    timers = Timers()
    timers(("a", REGISTER_CLOCK, timers.now + 5))
    timers.harness.chain.finish()
    assert timers.harness.chain.close() == []
    assert timers.clock(10) == []
    assert timers.of_the_task == 0


# -- what survives ---------------------------------------------------------------------------------


def test_restored_timers_are_those_that_were_there_neither_fired_nor_deleted_ones() -> None:
    timers = Timers().register("a", 5, 10, 15).register("b", 10)(("b", DELETE, 10))
    timers.watermark(5)
    again = Timers(saved=timers.saved())
    assert again.watermark(4) == []
    assert again.watermark(20) == [("a", EVENT, 10), ("a", EVENT, 15)]


def test_after_a_restore_event_time_begins_anew_until_the_first_watermark() -> None:
    first = ChainHarness(linear(KeyedProcessOperator(Watching(), FIRST)))
    first.push([("a", 500)], [1])
    first.chain.control(Watermark(100))
    saved = first.chain.operators[0].freeze_state(BARRIER).write()
    operator = KeyedProcessOperator(Watching(), FIRST)
    again = ChainHarness(linear(operator), open_it=False)
    operator.initialize_state(saved)
    again.chain.open()
    again.push([("a", 50)], [2])
    again.chain.control(Watermark(60))
    assert again.output == [("record", MIN_TIMESTAMP, 2), ("timer", 60, 50)]


def test_a_restored_timer_that_is_registered_again_is_still_one() -> None:
    timers = Timers(saved=Timers().register("a", 10).saved()).register("a", 10)
    assert timers.watermark(10) == [("a", EVENT, 10)]


def test_a_restored_timer_can_be_deleted() -> None:
    timers = Timers(saved=Timers().register("a", 10, 11).saved())(("a", DELETE, 10))
    assert timers.watermark(20) == [("a", EVENT, 11)]


def test_timers_whose_moment_passed_while_the_job_was_down_fire_when_it_is_back() -> None:
    before = Timers()
    at = before.now
    before(("a", REGISTER_CLOCK, at + 10), ("b", REGISTER_CLOCK, at + 500))
    again = Timers(saved=before.saved(), clock_ms=100)
    assert again.clock(1) == [("a", PROCESSING, at + 10)]
    assert again.clock(401) == [("b", PROCESSING, at + 500)]


def test_a_snapshot_in_between_changes_nothing() -> None:
    timers = Timers(
        Commanded(lambda key, timestamp: [(REGISTER, timestamp + 10)] if timestamp < 20 else [])
    ).register("a", 10)
    timers.saved()
    assert timers.watermark(10) == [("a", EVENT, 10)]
    timers.saved()
    assert timers.watermark(30) == [("a", EVENT, 20)]


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1), (2, 5), (4, 4)])
def test_timers_go_where_the_key_groups_of_their_keys_go(before: int, after: int) -> None:
    keys = [f"key {number}" for number in range(40)]
    saved = []
    for subtask in range(before):
        timers = Timers()
        for number, key in enumerate(keys):
            if key_group(key, TASK.max_parallelism) in key_group_range(
                subtask, TASK.max_parallelism, before
            ):
                timers((key, REGISTER, number), (key, REGISTER_CLOCK, timers.now + number))
        saved.append(timers.saved())
    fired: Fired = []
    for subtask in range(after):
        mine = key_group_range(subtask, TASK.max_parallelism, after)
        timers = Timers(saved=keyed_share(saved, mine))
        got = timers.watermark(100) + timers.clock(60)
        assert all(key_group(key, TASK.max_parallelism) in mine for key, _, _ in got)
        fired += got
    assert sorted((key, domain.name) for key, domain, _ in fired) == sorted(
        (key, domain.name) for key in keys for domain in TimeDomain
    )


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [REGISTER, DELETE, REGISTER_CLOCK, DELETE_CLOCK])
@pytest.mark.parametrize("when", [None, "10", 10.5, 1e12])
def test_a_time_that_is_no_whole_number_fails_with_its_record(call: str, when: Any) -> None:
    with pytest.raises(
        UserCodeError, match="a timer's time is a whole number of milliseconds, this is"
    ) as caught:
        Timers()(("a", call, when))
    assert caught.value.record == repr(("a", call, when))


def test_whole_numbers_of_other_kinds_are_times() -> None:
    timers = Timers()(("a", REGISTER, np.int64(10)), ("a", REGISTER, np.uint8(1)))
    assert timers.watermark(10) == [("a", EVENT, 1), ("a", EVENT, 10)]


# -- two inputs ------------------------------------------------------------------------------------


class Both(KeyedCoProcessFunction):
    """Input 1 registers, input 2 deletes."""

    def process_element1(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[1])

    def process_element2(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().delete_event_time_timer(value[1])

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield ctx.get_current_key(), ctx.time_domain(), timestamp


def test_one_input_deletes_what_the_other_registered() -> None:
    harness = ChainHarness(linear(KeyedCoProcessOperator(Both(), FIRST, FIRST), inputs=2))
    harness.push([("a", 10), ("b", 10), ("a", 20)])
    harness.push([("a", 10)], input_index=1)
    harness.control(Watermark(30))
    assert harness.output == [("b", EVENT, 10), ("a", EVENT, 20)]


# -- against a model -------------------------------------------------------------------------------


def what_follows(key: str, timestamp: int) -> list[tuple[str, int]]:
    """Each timer has its way of going on: some register, before or behind themselves, some delete,
    most do nothing."""
    return {
        0: [(REGISTER, timestamp + 3)],
        1: [(DELETE, timestamp + 1)],
        2: [(REGISTER, timestamp - 1), (DELETE, timestamp + 2)],
    }.get((timestamp * 7 + ord(key)) % 6, [])


class Model:
    """Per key a set of times; the least due one fires first, again and again."""

    def __init__(self) -> None:
        self.timers: dict[str, set[int]] = {key: set() for key in "abc"}

    def call(self, key: str, call: str, when: int) -> None:
        (set.add if call == REGISTER else set.discard)(self.timers[key], when)

    def watermark(self, timestamp: int) -> dict[str, list[int]]:
        fired: dict[str, list[int]] = {key: [] for key in "abc"}
        for key, times in self.timers.items():
            while times and min(times) <= timestamp:
                due = min(times)
                times.discard(due)
                fired[key].append(due)
                for call, when in what_follows(key, due):
                    self.call(key, call, when)
        return fired


@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.sampled_from("abc"),
                st.sampled_from([REGISTER, REGISTER, DELETE]),
                st.integers(0, 40),
            ),
            st.integers(1, 9),
            st.just("restart"),
        )
    )
)
def test_timers_that_change_others_do_what_a_set_per_key_does(steps: list[Any]) -> None:
    timers, model, now = Timers(Commanded(what_follows)), Model(), 0
    for step in [*steps, 100]:
        if step == "restart":
            timers = Timers(Commanded(what_follows), timers.saved())
        elif isinstance(step, tuple):
            timers(step)
            model.call(*step)
        else:
            now += step
            fired = timers.watermark(now)
            assert {
                key: [when for of, _, when in fired if of == key] for key in "abc"
            } == model.watermark(now)


def test_the_service_needs_nothing_of_the_operator_but_time_and_key() -> None:
    """The contexts of two operators in one chain do not meet."""
    config = linear(
        KeyedProcessOperator(Commanded(), FIRST), KeyedProcessOperator(Renaming(), FIRST)
    )
    harness = ChainHarness(config)
    contexts: list[OperatorContext] = [operator.context for operator in harness.chain.operators]
    assert contexts[0] is not contexts[1]
    harness.push([("a", REGISTER, 10)])
    harness.control(Watermark(10))
    assert harness.output == [], "the second one's timer is at 15"
    harness.control(Watermark(15))
    assert harness.output == [("behind", "a", 15)]


class Renaming(KeyedProcessFunction):
    def process_element(self, value: Any, ctx: Any) -> None:
        ctx.timer_service().register_event_time_timer(value[2] + 5)

    def on_timer(self, timestamp: int, ctx: Any) -> Iterable[Any]:
        yield "behind", ctx.get_current_key(), timestamp
