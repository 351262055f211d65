"""The simulated network: what it does to messages and processes, and that a seed decides all of
it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.actors.rpc.simulated.event_queue import Simulation, SimulationError
from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan, SimulatedNetwork
from flinkpy.core.errors import EngineError, RecipientUnreachableError, RpcError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.options.engine import RpcConfig

from .sample import Sample, SampleGateway

CONFIG = RpcConfig(ask_timeout=timedelta(seconds=1))


class Pair:
    """A Sample endpoint in each of two processes; ``gateway`` leads from one to the other."""

    def __init__(
        self,
        seed: int = 1,
        faults: FaultPlan = FaultPlan(),  # noqa: B008
        pickle_messages: bool = False,
    ) -> None:
        self.network = SimulatedNetwork(seed, config=CONFIG, pickle_messages=pickle_messages)
        self.one, self.two = (Sample(self.network.service(process)) for process in ("one", "two"))
        self.one.start()
        self.two.start()
        self.gateway = self.network.result(self.one.connect(self.two.address, SampleGateway))
        self.network.faults = faults

    def tell_all(self, count: int) -> list[int]:
        """What arrives of so many tells."""
        for number in range(count):
            self.gateway.note(number)
        self.network.run_for(60)
        return list(self.two.seen)


# -- messages --------------------------------------------------------------------------------------


def test_messages_take_time_and_keep_their_order() -> None:
    pair = Pair()
    before = pair.network.now
    pair.gateway.note("x")
    assert pair.two.seen == []
    assert pair.network.run_until(lambda: pair.two.seen == ["x"])
    assert before < pair.network.now <= before + FaultPlan().max_delay_s
    assert pair.tell_all(200)[1:] == list(range(200))


def test_dropped_messages_do_not_arrive_and_are_counted() -> None:
    pair = Pair(faults=FaultPlan(drop=0.3))
    seen = pair.tell_all(1000)
    assert seen == sorted(seen)
    assert len(seen) == 1000 - pair.network.statistics().dropped
    assert 600 < len(seen) < 800


def test_doubled_messages_arrive_twice_in_order() -> None:
    pair = Pair(faults=FaultPlan(duplicate=0.2))
    seen = pair.tell_all(1000)
    assert len(seen) == 1000 + pair.network.statistics().duplicated > 1000
    assert sorted(set(seen)) == list(range(1000))


def test_a_doubled_ask_is_answered_once() -> None:
    pair = Pair(faults=FaultPlan(duplicate=1.0))
    answers: list[object] = []
    for number in range(50):
        pair.gateway.echo(number).add_done_callback(lambda done: answers.append(done.result()))
    pair.network.run_for(10)
    assert answers == list(range(50))


def test_reordered_messages_all_arrive() -> None:
    pair = Pair(faults=FaultPlan(reorder=0.5))
    seen = pair.tell_all(500)
    assert seen != list(range(500))
    assert sorted(seen) == list(range(500))


def test_a_late_message_holds_up_those_behind_it() -> None:
    pair = Pair(faults=FaultPlan(late=0.1, late_s=5))
    before = pair.network.now
    assert pair.tell_all(100) == list(range(100))
    assert pair.network.now > before + 1


def test_messages_within_a_process_are_safe_from_every_danger() -> None:
    pair = Pair(faults=FaultPlan(drop=1.0, duplicate=1.0, reorder=1.0))
    gateway = pair.network.result(pair.one.connect(pair.one.address, SampleGateway))
    for number in range(100):
        gateway.note(number)
    assert pair.network.result(gateway.notes()) == list(range(100))


def test_the_dangers_end_when_the_plan_says_so() -> None:
    pair = Pair(faults=FaultPlan(drop=1.0, until_s=30.0))
    with pytest.raises(RpcTimeoutError):
        pair.network.result(pair.gateway.echo(1))
    pair.network.run_for(30)
    assert pair.network.result(pair.gateway.echo(2)) == 2


def test_what_does_not_pickle_fails_where_it_is_sent_when_messages_are_pickled() -> None:
    pair = Pair(pickle_messages=True)
    with pytest.raises(
        RpcError, match=r"sample\.note cannot be sent to another process: TypeError"
    ):
        pair.gateway.note(threading.Lock())
    pair.two.seen.append(threading.Lock())
    with pytest.raises(RpcError, match="cannot be sent to another process"):
        pair.network.result(pair.gateway.notes())


def test_pickled_messages_are_copies() -> None:
    for pickled in (False, True):
        pair, sent = Pair(pickle_messages=pickled), ["a list"]
        pair.gateway.note(sent)
        assert (pair.network.result(pair.gateway.notes())[0] is sent) is not pickled


# -- cuts ------------------------------------------------------------------------------------------


def test_nothing_gets_through_a_partition_until_it_is_healed() -> None:
    pair = Pair()
    pair.network.partition("one", ["two"])
    with pytest.raises(RpcTimeoutError):
        pair.network.result(pair.gateway.echo(1))
    pair.network.heal()
    assert pair.network.result(pair.gateway.echo(2)) == 2
    assert pair.network.statistics().cut == 1


def test_a_partition_may_cut_one_way_only() -> None:
    pair = Pair()
    pair.network.partition("two", "one", both_ways=False)
    with pytest.raises(RpcTimeoutError):
        pair.network.result(pair.gateway.echo(1))
    pair.gateway.note("gets there")
    pair.network.run_for(1)
    assert pair.two.seen == ["gets there"]
    pair.network.heal("one", "two")
    assert pair.network.result(pair.gateway.echo(2)) == 2


def test_a_message_on_its_way_is_lost_when_the_partition_comes() -> None:
    pair = Pair()
    pair.gateway.note("lost")
    pair.network.partition("one", "two")
    pair.network.run_for(1)
    pair.network.heal()
    pair.network.run_for(1)
    assert pair.two.seen == []


# -- crashes ---------------------------------------------------------------------------------------


def test_a_crashed_process_does_nothing_any_more() -> None:
    pair = Pair()
    pair.two.schedule_run_async(1.0, lambda: pair.two.seen.append("timer"))
    pair.gateway.note("in flight")
    pair.network.crash("two")
    pair.network.run_for(60)
    assert (pair.two.seen, pair.two.life) == ([], ["on_start"])


def test_a_noticed_crash_fails_open_asks_and_tells_those_who_watch() -> None:
    pair = Pair()
    heard: list[str] = []
    pair.network.service("three")
    pair.one.service.watch(pair.one, pair.two.address, heard.append)
    ask, before = pair.gateway.never(), pair.network.now
    pair.network.crash("two", noticed=True)
    with pytest.raises(
        RecipientUnreachableError, match=r"never at two/sample: process two has crashed"
    ):
        pair.network.result(ask)
    assert pair.network.now - before < CONFIG.ask_timeout.total_seconds()
    pair.network.run_for(1)
    assert heard == ["process two has crashed"]
    with pytest.raises(RecipientUnreachableError, match="there is no process two"):
        pair.network.result(pair.gateway.echo(1))


def test_after_an_unnoticed_crash_there_is_silence() -> None:
    pair = Pair()
    heard: list[str] = []
    pair.one.service.watch(pair.one, pair.two.address, heard.append)
    pair.network.crash("two", noticed=False)
    pair.one.service.watch(pair.one, pair.two.address, heard.append)
    with pytest.raises(RpcTimeoutError):
        pair.network.result(pair.gateway.echo(1))
    pair.network.run_for(60)
    assert heard == []


def test_a_process_may_come_back_and_gets_no_mail_of_its_former_life() -> None:
    pair = Pair()
    pair.gateway.note("for the former one")
    pair.network.crash("two", noticed=False)
    again = Sample(pair.network.service("two"))
    again.start()
    assert pair.network.result(pair.gateway.echo(1)) == 1
    assert again.seen == []


def test_a_process_name_is_taken_only_once() -> None:
    with pytest.raises(EngineError, match="there is a process one already"):
        Pair().network.service("one")


# -- the queue -------------------------------------------------------------------------------------


def test_equal_times_run_in_the_order_they_were_scheduled() -> None:
    simulation, seen = Simulation(), list[int]()
    for number in (1, 2, 3):
        simulation.schedule(5, lambda number=number: seen.append(number))  # type: ignore[misc]
    assert simulation.run_until(lambda: len(seen) == 3)
    assert (seen, simulation.now) == ([1, 2, 3], 5)


def test_running_for_a_time_ends_at_that_time_whatever_happens() -> None:
    simulation = Simulation()
    simulation.schedule(50, lambda: None)
    simulation.run_for(20)
    assert (simulation.now, simulation.events) == (20, 0)
    assert not simulation.run_until(lambda: False, max_time_s=29)
    assert not simulation.run_until(lambda: False)
    assert (simulation.now, simulation.events) == (50, 1)


def test_a_bug_ends_the_run_with_its_seed_and_its_story() -> None:
    pair = Pair(seed=42)
    pair.gateway.fail_silently()
    with pytest.raises(
        SimulationError,
        match=r"(?s)seed 42, event \d+ .*raised KeyError.*one>two sample.fail_silently",
    ) as raised:
        pair.network.run_for(1)
    assert isinstance(raised.value.__cause__, KeyError)


def test_the_hook_sees_the_world_after_each_event_and_ends_the_run_when_it_raises() -> None:
    pair = Pair()

    def check() -> None:
        assert len(pair.two.seen) < 3, "too many notes"

    pair.network.after_event = check
    with pytest.raises(SimulationError, match="too many notes"):
        pair.tell_all(10)
    assert pair.two.seen == [0, 1, 2]


def scene(seed: int, faults: FaultPlan) -> tuple[str, list[object]]:
    """Some traffic, a cut, a crash; gives the digest and what was seen."""
    network = SimulatedNetwork(seed, faults, config=CONFIG)
    endpoints = [Sample(network.service(f"p{number}")) for number in range(4)]
    outcomes: list[object] = []
    for endpoint in endpoints:
        endpoint.start()
    for source in endpoints:
        for target in endpoints:

            def talk(
                gateway: SampleGateway, label: str = f"{source.address}>{target.address}"
            ) -> None:
                gateway.note(label)
                gateway.echo(label).add_done_callback(
                    lambda done: outcomes.append((label, repr(done.error)))
                )

            source.connect(target.address, SampleGateway).then(talk)
    network.schedule(0.001, lambda: network.partition("p0", ["p1", "p2"]))
    network.schedule(0.002, lambda: network.crash("p3"))
    network.schedule(1.0, network.heal)
    network.run_for(10)
    return network.trace_digest(), [outcomes, [endpoint.seen for endpoint in endpoints]]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.5), st.floats(0, 0.5), st.floats(0, 0.5))
def test_an_equal_seed_gives_an_equal_run(
    seed: int, drop: float, duplicate: float, reorder: float
) -> None:
    faults = FaultPlan(drop=drop, duplicate=duplicate, reorder=reorder, late=0.1, crash_noticed=0.5)
    assert scene(seed, faults) == scene(seed, faults)


def test_another_seed_gives_another_run() -> None:
    faults = FaultPlan(drop=0.1)
    assert len({scene(seed, faults)[0] for seed in range(20)}) == 20


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0, 0.9))
def test_every_ask_is_answered_or_fails_whatever_the_network_does(seed: int, danger: float) -> None:
    pair = Pair(seed, FaultPlan(drop=danger, duplicate=danger, reorder=danger, late=danger))
    asks: list[Future[object]] = [pair.gateway.echo(number) for number in range(20)]
    pair.network.schedule(0.5, lambda: pair.network.crash("two"))
    pair.network.run_for(5)
    assert all(ask.done for ask in asks)
    assert [ask.result() for ask in asks if ask.error is None] == [
        number for number, ask in enumerate(asks) if ask.error is None
    ]


def test_what_runs_in_background_takes_time_and_dies_with_its_process() -> None:
    pair = Pair(faults=replace(FaultPlan(), background_s=1.0))
    result = pair.two.service.run_in_background(pair.two, lambda: 7)
    assert pair.network.result(result) == 7
    lost = pair.two.service.run_in_background(pair.two, lambda: 8)
    pair.network.crash("two")
    pair.network.run_for(10)
    assert not lost.done


def test_a_seed_replays_identically_in_another_interpreter() -> None:
    code = (
        "from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan\nfrom "
        "tests.actors.rpc.test_simulation import scene\n"
        "print(scene(11, FaultPlan(drop=0.2, duplicate=0.2, reorder=0.2))[0])"
    )
    expected = scene(11, FaultPlan(drop=0.2, duplicate=0.2, reorder=0.2))[0]
    for salt in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            check=True,
            text=True,
        )
        assert run.stdout.strip() == expected
