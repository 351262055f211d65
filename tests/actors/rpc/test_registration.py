"""Registrations that try again, and leadership."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

import pytest

from flinkpy.actors.rpc.endpoint import FencedRpcEndpoint, RpcEndpoint
from flinkpy.actors.rpc.gateway_proxy import address_of
from flinkpy.actors.rpc.leadership import (
    NO_LEADER,
    FixedLeader,
    LeaderInformation,
    StandaloneLeadership,
)
from flinkpy.actors.rpc.registration import RegistrationResponse, RetryingRegistration
from flinkpy.actors.rpc.service import RpcService
from flinkpy.actors.rpc.simulated.event_queue import SimulationError
from flinkpy.actors.rpc.simulated.unreliable_network import SimulatedNetwork
from flinkpy.core.errors import EngineError, RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, IdFactory, ResourceId
from flinkpy.core.options.engine import RpcConfig

CONFIG = RpcConfig(
    ask_timeout=timedelta(seconds=1),
    registration_initial=timedelta(milliseconds=100),
    registration_max=timedelta(seconds=2),
)
TERM = FencingToken("term-one")


class RegistryGateway(Protocol):
    def register(self, name: str) -> Future[RegistrationResponse]: ...


class Registry(FencedRpcEndpoint):
    gateway = RegistryGateway

    def __init__(
        self, service: RpcService, refuse: str = "", error: Exception | None = None
    ) -> None:
        self.calls = 0
        self._refuse = refuse
        self._error = error
        super().__init__(service, "registry", TERM)

    def register(self, name: str) -> RegistrationResponse:
        self.calls += 1
        if self._error is not None:
            raise self._error
        return RegistrationResponse(not self._refuse, ResourceId("registry"), reason=self._refuse)


class Client(RpcEndpoint):
    gateway = RegistryGateway

    def __init__(self, service: RpcService) -> None:
        self.places: list[str] = []
        self.refusals: list[str] = []
        self.times: list[float] = []
        super().__init__(service, "client")
        self.registration = RetryingRegistration(
            self, "leader/registry", RegistryGateway, TERM, self, CONFIG
        )

    def on_start(self) -> None:
        self.registration.start()

    def register(self, gateway: RegistryGateway) -> Future[RegistrationResponse]:
        self.times.append(self.service.clock.monotonic())
        return gateway.register("client")

    def registered(self, gateway: RegistryGateway, response: RegistrationResponse) -> None:
        self.places.append(address_of(gateway))

    def refused(self, response: RegistrationResponse) -> None:
        self.refusals.append(response.reason)


@pytest.fixture
def network() -> SimulatedNetwork:
    return SimulatedNetwork(seed=5, config=CONFIG)


def start_client(network: SimulatedNetwork) -> Client:
    client = Client(network.service("worker"))
    client.start()
    return client


def test_a_registration_succeeds_at_once_when_the_leader_is_there(
    network: SimulatedNetwork,
) -> None:
    Registry(network.service("leader")).start()
    client = start_client(network)
    network.run_for(1)
    assert (client.places, client.registration.attempts) == (["leader/registry"], 1)


def test_a_registration_waits_for_a_leader_with_growing_pauses(network: SimulatedNetwork) -> None:
    client = start_client(network)
    network.run_for(3.05)  # tries at about 0, 0.1, 0.3, 0.7, 1.5 and 3.1 s
    assert client.registration.attempts == 5
    network.run_for(60)
    assert 5 + 28 <= client.registration.attempts <= 5 + 31  # the pause grew to 2 s and no further
    Registry(network.service("leader")).start()
    assert network.run_until(lambda: client.places == ["leader/registry"], max_time_s=3)


def test_a_registration_survives_a_lost_answer(network: SimulatedNetwork) -> None:
    registry = Registry(network.service("leader"))
    registry.start()
    client = start_client(network)
    network.run_until(lambda: registry.calls == 1)
    network.partition("leader", "worker", both_ways=False)
    network.run_for(0.5)
    network.heal()
    network.run_for(5)
    assert (client.places, registry.calls) == (["leader/registry"], 2)


def test_a_refused_registration_is_not_tried_again(network: SimulatedNetwork) -> None:
    registry = Registry(network.service("leader"), refuse="unknown job")
    registry.start()
    client = start_client(network)
    network.run_for(60)
    assert (client.places, client.refusals, registry.calls) == ([], ["unknown job"], 1)


def test_an_rpc_error_is_tried_again(network: SimulatedNetwork) -> None:
    registry = Registry(network.service("leader"), error=RpcError("not now"))
    registry.start()
    client = start_client(network)
    network.run_for(2)
    assert (client.places, registry.calls) == ([], 5)


def test_a_bug_is_not_tried_again_but_fatal(network: SimulatedNetwork) -> None:
    Registry(network.service("leader"), error=EngineError("a bug")).start()
    start_client(network)
    with pytest.raises(SimulationError, match="a bug"):
        network.run_for(2)


def test_a_closed_registration_reports_nothing(network: SimulatedNetwork) -> None:
    client = start_client(network)
    network.run_for(1)
    network.result(client.call_async(client.registration.close))
    attempts = client.registration.attempts
    Registry(network.service("leader")).start()
    network.run_for(60)
    assert (client.places, client.registration.attempts) == ([], attempts)


# -- leadership ------------------------------------------------------------------------------------


class Contender:
    def __init__(self, election: StandaloneLeadership) -> None:
        self.address = "jm/dispatcher"
        self.terms = list[FencingToken | None]()
        self._election = election

    def grant_leadership(self, token: FencingToken) -> None:
        self.terms.append(token)
        self._election.confirm(token, self.address)

    def revoke_leadership(self) -> None:
        self.terms.append(None)


def test_the_only_contender_leads_at_once_and_each_term_has_a_fresh_token() -> None:
    election = StandaloneLeadership(IdFactory(1))
    contender, heard = Contender(election), list[LeaderInformation]()
    election.retrieval().start(heard.append)
    election.start(contender)
    election.stop()
    election.start(contender)
    first, none, second = contender.terms
    assert first is not None
    assert second is not None
    assert none is None
    assert first != second
    assert heard == [
        LeaderInformation("jm/dispatcher", first),
        NO_LEADER,
        LeaderInformation("jm/dispatcher", second),
    ]
    assert (election.has_leadership(first), election.has_leadership(second)) == (False, True)


def test_a_late_listener_hears_of_the_leader_and_a_stopped_one_of_nothing() -> None:
    election = StandaloneLeadership(IdFactory(1), token=TERM)
    election.start(Contender(election))
    heard: list[LeaderInformation] = []
    retrieval = election.retrieval()
    retrieval.start(heard.append)
    retrieval.stop()
    election.stop()
    assert heard == [LeaderInformation("jm/dispatcher", TERM)]


def test_a_confirmation_of_a_past_term_is_ignored() -> None:
    election = StandaloneLeadership(IdFactory(1))
    heard: list[LeaderInformation] = []
    election.retrieval().start(heard.append)
    election.confirm(TERM, "jm/dispatcher")
    assert heard == []


def test_a_fixed_leader_is_told_at_once() -> None:
    heard: list[LeaderInformation] = []
    FixedLeader("jm/resourcemanager", TERM).start(heard.append)
    assert heard == [LeaderInformation("jm/resourcemanager", TERM)]
