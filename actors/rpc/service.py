"""The RpcService port: it hosts endpoints, and makes gateways to other endpoints.

Three services implement it: ``local_service`` (threads of one process), ``ray_service`` (each
process a Ray actor), and ``simulated_service`` (one thread, virtual clock, a network that loses,
delays, doubles and cuts). Endpoint code cannot tell them apart.

Addresses are ``process/endpoint``: ``local/dispatcher``, ``tm-3f2a/taskexecutor``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from flinkpy.core.clock import Clock
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, IdFactory
from flinkpy.core.lifecycles import EndpointState, StateMachine

G = TypeVar("G")
T = TypeVar("T")


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class Timers(Protocol):
    """Runs actions later, in the thread of whoever asks."""

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        """Runs the action in ``delay_s`` seconds."""
        ...


class MainThread(Timers, Protocol):
    """The single thread of one endpoint, as its service provides it."""

    def execute(
        self,
        action: Callable[[], object],
        description: str = "",
        on_refused: Callable[[Exception], object] | None = None,
    ) -> None:
        """Runs the action in the main thread, after what is queued. Before START the action waits.
        An action that is left at TERMINATE, or comes later, is dropped, and ``on_refused`` is
        called with the reason."""
        ...

    def is_here(self) -> bool:
        """Whether the caller runs in the main thread."""
        ...

    def assert_here(self) -> None:
        """Raises EngineError when called in another thread (once the endpoint was started)."""
        ...


class HostedEndpoint(Protocol):
    """What a service needs of an endpoint that it hosts, or that calls through it.
    ``flinkpy.actors.rpc.endpoint.RpcEndpoint`` is one."""

    service: RpcService
    name: str
    gateway: type[Any]
    lifecycle: StateMachine[EndpointState]
    main_thread: MainThread

    def on_start(self) -> None:
        """Runs first, in the main thread."""
        ...

    def on_stop(self) -> Future[None] | None:
        """Runs last, in the main thread; the endpoint terminates when the returned future is
        done."""
        ...

    def on_uncaught_error(self, error: Exception) -> bool:
        """Whether the endpoint deals with an error that escaped from its main thread."""
        ...

    def in_main_thread(self, future: Future[T]) -> Future[T]:
        """Returns a future with the same outcome that completes in the endpoint's main thread."""
        ...

    def admit(self, method: str, token: FencingToken | None) -> None:
        """Returns if the call may be carried out now; else raises an RpcError that says why not."""
        ...

    def invoke(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carries out an admitted call. Returns a value, or a Future of it."""
        ...


class RpcService(ABC):
    """One per process."""

    clock: Clock
    ids: IdFactory

    @property
    @abstractmethod
    def process(self) -> str:
        """The name of this process in addresses."""

    def address_of(self, endpoint_name: str) -> str:
        return f"{self.process}/{endpoint_name}"

    @abstractmethod
    def register(self, endpoint: HostedEndpoint) -> MainThread:
        """Called by an endpoint's constructor. Returns its main thread. Messages are refused until
        the endpoint is started."""

    @abstractmethod
    def start_endpoint(self, endpoint: HostedEndpoint) -> None:
        """START: the endpoint accepts messages, and ``on_start`` runs in the main thread."""

    @abstractmethod
    def stop_endpoint(self, endpoint: HostedEndpoint) -> Future[None]:
        """STOP, then TERMINATE: ``on_stop`` runs in the main thread. When its future is done, what
        is left in the mailbox is answered with an error, the address is free, and the returned
        future completes."""

    @abstractmethod
    def connect(
        self,
        caller: HostedEndpoint | None,
        address: str,
        gateway: type[G],
        token: FencingToken | None = None,
    ) -> Future[G]:
        """Returns a gateway to the endpoint at ``address``, after a handshake that checks version
        and gateway; its calls carry ``token``.

        With a ``caller`` all futures complete in its main thread; without one (a client) in any
        thread. The future fails with RecipientUnreachableError, HandshakeError or RpcTimeoutError.
        """

    @abstractmethod
    def run_in_background(self, caller: HostedEndpoint, function: Callable[[], T]) -> Future[T]:
        """Runs a slow function off the main thread; the future completes in the caller's main
        thread. (The simulation runs it as an event.)"""

    @abstractmethod
    def watch(
        self, caller: HostedEndpoint, address: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        """Calls ``on_death(reason)`` in the caller's main thread once, when the process at the
        address is known to be dead. Services that cannot know (a network partition looks the same)
        leave it to heartbeats."""

    @abstractmethod
    def stop(self) -> Future[None]:
        """Stops every endpoint, then the service."""
