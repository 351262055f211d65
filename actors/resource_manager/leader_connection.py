"""An endpoint's connection to the leading ResourceManager: it registers the endpoint there, watches
the ResourceManager, and connects again when that is lost or another one leads."""

from __future__ import annotations

from typing import Protocol

from flinkpy.actors.gateways import ResourceManagerGateway
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.heartbeat import heartbeat_responder
from flinkpy.actors.rpc.leadership import NO_LEADER, LeaderInformation, LeaderRetrievalService
from flinkpy.actors.rpc.registration import RegistrationResponse, RetryingRegistration
from flinkpy.actors.rpc.service import Cancellable
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, ResourceId
from flinkpy.core.options.engine import RpcConfig


class ResourceManagerClient(Protocol):
    """What an endpoint tells the ResourceManager at which it registers."""

    def register_at(self, manager: ResourceManagerGateway) -> Future[RegistrationResponse]:
        """Sends the registration."""
        ...

    def registered_at(self, manager: ResourceManagerGateway) -> None:
        """There is a new connection."""
        ...

    def registration_refused(self, response: RegistrationResponse) -> None:
        """The connection does not try again until ``register_again``."""
        ...

    def beat(self, manager: ResourceManagerGateway) -> None:
        """Answers a heartbeat."""
        ...


class ResourceManagerConnection:
    """All calls come from the endpoint's main thread, and ``client`` is called there."""

    def __init__(
        self,
        endpoint: RpcEndpoint,
        retrieval: LeaderRetrievalService,
        config: RpcConfig,
        client: ResourceManagerClient,
    ) -> None:
        self._endpoint = endpoint
        self._retrieval = retrieval
        self._config = config
        self._client = client
        self._leader = NO_LEADER
        self._registration: RetryingRegistration[ResourceManagerGateway] | None = None
        self._peer: ResourceId | None = None
        self._watch: Cancellable | None = None
        self._closed = False
        self._heartbeats = heartbeat_responder(
            endpoint, config, lambda peer: self.lose_leader("it sent no heartbeat in time")
        )
        self.gateway: ResourceManagerGateway | None = None  # while registered

    @property
    def token(self) -> FencingToken | None:
        """The token of the ResourceManager at which this endpoint is registered."""
        return self._leader.token if self.gateway is not None else None

    def start(self) -> None:
        self._retrieval.start(lambda leader: self._endpoint.run_async(lambda: self._leads(leader)))

    def close(self) -> None:
        self._closed = True
        self._retrieval.stop()
        self._end_registration()

    def _leads(self, leader: LeaderInformation) -> None:
        if leader != self._leader:
            self._end_registration()
            self._leader = leader
            self.register_again()

    def register_again(self) -> None:
        """Registers again, after a refusal or a loss."""
        address, token = self._leader
        if self._closed or address is None:
            return
        self._registration = RetryingRegistration(
            self._endpoint, address, ResourceManagerGateway, token, self, self._config
        )
        self._registration.start()

    def register(self, gateway: ResourceManagerGateway) -> Future[RegistrationResponse]:
        return self._client.register_at(gateway)

    def refused(self, response: RegistrationResponse) -> None:
        self._client.registration_refused(response)

    def registered(self, gateway: ResourceManagerGateway, response: RegistrationResponse) -> None:
        assert self._leader.address is not None
        self.gateway, self._peer = gateway, response.resource_id
        self._watch = self._endpoint.service.watch(
            self._endpoint, self._leader.address, self.lose_leader
        )
        self._heartbeats.monitor(response.resource_id, lambda: self._client.beat(gateway))
        self._client.registered_at(gateway)

    def heartbeat_received(self, resource_id: ResourceId) -> None:
        self._heartbeats.request_received(resource_id)

    def lose_leader(self, reason: str) -> None:
        """Registers again if the lost ResourceManager is the one it was registered at."""
        if self.gateway is not None:
            self._end_registration()
            self.register_again()

    def _end_registration(self) -> None:
        if self._registration is not None:
            self._registration.close()
        if self._watch is not None:
            self._watch.cancel()
        if self._peer is not None:
            self._heartbeats.unmonitor(self._peer)
        self.gateway = self._peer = self._watch = self._registration = None

    def __repr__(self) -> str:
        state = (
            "registered"
            if self.gateway is not None
            else "registering"
            if self._registration is not None
            else "not registered"
        )
        return (
            f"<ResourceManagerConnection of {self._endpoint.address} to "
            f"{self._leader.address or 'nobody'}: {state}>"
        )
