"""Heartbeats, their timers driven by hand or by the simulation."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

import pytest

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import HeartbeatManager, heartbeat_requester, heartbeat_responder
from flinkpy.actors.rpc.service import RpcService
from flinkpy.actors.rpc.simulated.event_queue import Simulation
from flinkpy.actors.rpc.simulated.unreliable_network import FaultPlan, SimulatedNetwork
from flinkpy.core.ids import ResourceId
from flinkpy.core.options.engine import RpcConfig

A, B = ResourceId("a"), ResourceId("b")
CONFIG = RpcConfig(
    heartbeat_interval=timedelta(seconds=10), heartbeat_timeout=timedelta(seconds=50)
)


class Bench:
    """A manager on a bare simulation, and what it did."""

    def __init__(self, interval_s: float | None, timeout_s: float = 50.0) -> None:
        self.simulation = Simulation()
        self.timeouts: list[tuple[float, ResourceId]] = []
        self.beats: list[tuple[float, ResourceId]] = []
        self.payloads: list[tuple[ResourceId, str]] = []
        self.manager: HeartbeatManager[str] = HeartbeatManager(
            self.simulation,
            self.simulation.clock,
            timeout_s,
            lambda target: self.timeouts.append((self.simulation.now, target)),
            lambda target, payload: self.payloads.append((target, payload)),
            interval_s,
        )

    def monitor(self, target: ResourceId) -> None:
        self.manager.monitor(target, lambda: self.beats.append((self.simulation.now, target)))


def test_the_requesting_side_beats_every_interval() -> None:
    bench = Bench(interval_s=10.0)
    bench.monitor(A)
    bench.simulation.run_for(25)
    assert bench.beats == [(0.0, A), (10.0, A), (20.0, A)]


@pytest.mark.parametrize(("timeout_s", "asked"), [(30.0, [0.0, 20.0]), (29.0, [0.0, 10.0, 20.0])])
def test_who_sends_its_heartbeat_unasked_is_spared_the_next_request_if_the_timeout_is_long(
    timeout_s: float, asked: list[float]
) -> None:
    bench = Bench(10.0, timeout_s)
    bench.monitor(A)
    bench.simulation.run_for(5)
    bench.manager.came_unasked(A, "with a report")
    bench.simulation.run_for(20)
    assert [when for when, _ in bench.beats] == asked
    assert bench.payloads == [(A, "with a report")]
    assert bench.timeouts == []


def test_the_answering_side_beats_when_asked_and_not_by_itself() -> None:
    bench = Bench(interval_s=None)
    bench.monitor(A)
    bench.simulation.run_for(25)
    assert bench.beats == []
    bench.manager.request_received(A)
    assert bench.beats == [(25.0, A)]


def test_silence_is_reported_once_and_exactly_when_the_timeout_is_over() -> None:
    bench = Bench(interval_s=10.0)
    bench.monitor(A)
    bench.simulation.run_for(7)
    bench.monitor(B)
    bench.simulation.run_for(33)
    bench.manager.answer_received(A)
    bench.simulation.run_for(200)
    assert bench.timeouts == [(57.0, B), (90.0, A)]
    assert bench.manager.targets == ()


def test_a_payload_reaches_its_receiver_and_a_strangers_does_not() -> None:
    bench = Bench(interval_s=10.0)
    bench.monitor(A)
    bench.manager.answer_received(A, "slots")
    bench.manager.answer_received(B, "whose?")
    bench.manager.request_received(B)
    assert bench.payloads == [(A, "slots")]


def test_a_target_that_is_forgotten_is_not_reported() -> None:
    bench = Bench(interval_s=10.0)
    bench.monitor(A)
    bench.monitor(B)
    bench.manager.unmonitor(A)
    bench.manager.unmonitor(A)
    bench.simulation.run_for(200)
    assert bench.timeouts == [(50.0, B)]


def test_a_report_may_have_others_forgotten() -> None:
    bench = Bench(interval_s=None)

    def report(target: ResourceId) -> None:
        bench.timeouts.append((bench.simulation.now, target))
        bench.manager.stop()

    bench.manager = HeartbeatManager(bench.simulation, bench.simulation.clock, 50.0, report)
    bench.monitor(A)
    bench.monitor(B)
    bench.simulation.run_for(200)
    assert bench.timeouts == [(50.0, A)]


def test_nothing_is_scheduled_once_nobody_is_monitored() -> None:
    bench = Bench(interval_s=10.0)
    bench.monitor(A)
    bench.simulation.run_for(5)
    bench.manager.unmonitor(A)
    before = bench.simulation.events
    bench.simulation.run_for(1000)
    assert bench.simulation.events == before
    bench.monitor(A)
    bench.simulation.run_for(55)
    assert bench.timeouts == [(1055.0, A)]


# -- both ends, over a network ---------------------------------------------------------------------


class LeaderGateway(Protocol):
    def heartbeat_from_worker(self, worker: ResourceId, payload: int) -> None: ...


class WorkerGateway(Protocol):
    def heartbeat_from_leader(self, leader: ResourceId) -> None: ...


class Leader(RpcEndpoint):
    gateway = LeaderGateway

    def __init__(self, service: RpcService, worker_address: str) -> None:
        self.lost: list[ResourceId] = []
        self.payloads: list[int] = []
        self._worker_address = worker_address
        super().__init__(service, "leader")
        self.heartbeats = heartbeat_requester(
            self, CONFIG, self.lost.append, lambda _, payload: self.payloads.append(payload)
        )

    def on_start(self) -> None:
        self.connect(self._worker_address, WorkerGateway).then(
            lambda worker: self.heartbeats.monitor(B, lambda: worker.heartbeat_from_leader(A))
        )

    def heartbeat_from_worker(self, worker: ResourceId, payload: int) -> None:
        self.heartbeats.answer_received(worker, payload)


class Worker(RpcEndpoint):
    gateway = WorkerGateway

    def __init__(self, service: RpcService) -> None:
        self.lost: list[ResourceId] = []
        self.beats = 0
        super().__init__(service, "worker")
        self.heartbeats = heartbeat_responder(self, CONFIG, self.lost.append)

    def on_start(self) -> None:
        def monitor(leader: LeaderGateway) -> None:
            self.heartbeats.monitor(A, lambda: leader.heartbeat_from_worker(B, self._beat()))

        self.connect("jm/leader", LeaderGateway).then(monitor)

    def _beat(self) -> int:
        self.beats += 1
        return self.beats

    def heartbeat_from_leader(self, leader: ResourceId) -> None:
        self.heartbeats.request_received(leader)


@pytest.fixture
def pair() -> tuple[SimulatedNetwork, Leader, Worker]:
    network = SimulatedNetwork(seed=3, config=CONFIG)
    leader, worker = Leader(network.service("jm"), "tm/worker"), Worker(network.service("tm"))
    leader.start()
    worker.start()
    network.run_for(101)
    return network, leader, worker


def test_a_healthy_pair_beats_on_for_ever(pair: tuple[SimulatedNetwork, Leader, Worker]) -> None:
    network, leader, worker = pair
    network.faults = FaultPlan(drop=0.1)
    network.run_for(500)
    assert leader.lost == worker.lost == []
    assert 40 < len(leader.payloads) <= worker.beats


def test_both_sides_notice_a_partition(pair: tuple[SimulatedNetwork, Leader, Worker]) -> None:
    network, leader, worker = pair
    network.partition("jm", "tm")
    network.run_for(61)
    assert (leader.lost, worker.lost) == ([B], [A])


def test_a_crash_that_nobody_was_told_of_is_noticed_by_its_silence(
    pair: tuple[SimulatedNetwork, Leader, Worker],
) -> None:
    network, leader, _ = pair
    network.crash("tm", noticed=False)
    network.run_for(61)
    assert leader.lost == [B]
