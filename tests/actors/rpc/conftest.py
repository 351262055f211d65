"""One contract, several services: each test that takes ``rpc`` runs on threads and in the
simulation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import TypeVar

import pytest

from flinkpy.actors.rpc.base_service import BaseRpcService
from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.local_service import LocalRpcService
from flinkpy.actors.rpc.simulated.unreliable_network import SimulatedNetwork
from flinkpy.core.futures import Future
from flinkpy.core.options.engine import RpcConfig

T = TypeVar("T")

PATIENT = RpcConfig(ask_timeout=timedelta(seconds=30))
HASTY = RpcConfig(ask_timeout=timedelta(seconds=0.1))


class Rpc(ABC):
    """What a contract test needs of a service: processes, and a way to wait."""

    def __init__(self) -> None:
        self.fatal: list[BaseException] = []

    def on_fatal(self, address: str, error: BaseException) -> None:
        self.fatal.append(error)

    @abstractmethod
    def service(self, process: str = "one", config: RpcConfig = PATIENT) -> BaseRpcService: ...

    @abstractmethod
    def wait(self, future: Future[T]) -> T: ...

    @abstractmethod
    def close(self) -> None: ...

    def on(self, endpoint: RpcEndpoint, function: Callable[[], T]) -> T:
        """The result of a function run in the endpoint's main thread."""
        return self.wait(endpoint.call_async(function))


class LocalRpc(Rpc):
    def __init__(self) -> None:
        super().__init__()
        self.services: dict[str, LocalRpcService] = {}

    def service(self, process: str = "one", config: RpcConfig = PATIENT) -> LocalRpcService:
        if process not in self.services:
            first = next(iter(self.services.values()), None)
            if first is None:
                self.services[process] = LocalRpcService(
                    config=config, process=process, on_fatal=self.on_fatal
                )
            else:
                self.services[process] = first.sibling(process, config)
        return self.services[process]

    def wait(self, future: Future[T]) -> T:
        return future.result(timeout=30)

    def close(self) -> None:
        for service in self.services.values():
            service.stop().result(timeout=30)


class SimulatedRpc(Rpc):
    def __init__(self) -> None:
        super().__init__()
        self.network = SimulatedNetwork(seed=1, pickle_messages=True)
        self.services: dict[str, BaseRpcService] = {}

    def service(self, process: str = "one", config: RpcConfig = PATIENT) -> BaseRpcService:
        if process not in self.services:
            self.services[process] = self.network.service(process, self.on_fatal, config)
        return self.services[process]

    def wait(self, future: Future[T]) -> T:
        return self.network.result(future, max_time_s=60)

    def close(self) -> None:
        for service in self.services.values():
            self.network.result(service.stop(), max_time_s=60)


@pytest.fixture(params=[LocalRpc, SimulatedRpc], ids=["local", "simulated"])
def rpc(request: pytest.FixtureRequest) -> Iterator[Rpc]:
    made: Rpc = request.param()
    yield made
    made.close()
