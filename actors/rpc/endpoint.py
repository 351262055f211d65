"""RpcEndpoint: an actor. One mailbox, one main thread, states driven by START, STOP and TERMINATE.

Those public methods of a subclass that its gateway has can be called remotely. They run in the main
thread, one at a time, and may return a value or a :class:`Future`, or be coroutines (``async def``)
that await futures and let other messages run meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import CoroutineType
from typing import Any, Protocol, TypeVar

from flinkpy.actors.rpc.gateway_proxy import gateway_methods
from flinkpy.actors.rpc.service import Cancellable, MainThread, RpcService
from flinkpy.core.errors import EndpointNotRunningError, FencingError, RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken
from flinkpy.core.lifecycles import ENDPOINT, EndpointState, StateMachine

G = TypeVar("G")
T = TypeVar("T")


class NoGateway(Protocol):
    """The gateway of an endpoint that takes no calls."""


class RpcEndpoint:
    """An actor. Subclasses set their ``gateway`` (a Protocol), and override ``on_start`` and
    ``on_stop``."""

    gateway: type[Any]

    def __init__(self, service: RpcService, name: str) -> None:
        self.service = service
        self.name = name
        self.lifecycle: StateMachine[EndpointState] = StateMachine(
            ENDPOINT, f"endpoint {service.address_of(name)}"
        )
        self.main_thread: MainThread = service.register(self)

    @property
    def address(self) -> str:
        return self.service.address_of(self.name)

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the endpoint: from now on it processes messages."""
        self.service.start_endpoint(self)

    def stop(self) -> Future[None]:
        """Ends the endpoint. The future completes when ``on_stop`` is done and the mailbox is
        closed."""
        return self.service.stop_endpoint(self)

    def on_start(self) -> None:
        """Runs first, in the main thread."""

    def on_stop(self) -> Future[None] | None:
        """Runs last, in the main thread; the endpoint terminates when the returned future is
        done."""
        return None

    def on_uncaught_error(self, error: Exception) -> bool:
        """An error escaped from the main thread. Returns True when the endpoint has handled it,
        else it is fatal to the process."""
        return False

    # -- the main thread ---------------------------------------------------------------------------

    def assert_main_thread(self) -> None:
        self.main_thread.assert_here()

    def run_async(self, action: Callable[[], object]) -> None:
        """Runs the action in the main thread, after what is queued."""
        self.main_thread.execute(action)

    def call_async(self, function: Callable[[], T]) -> Future[T]:
        """Runs the function in the main thread and returns a future of its result. It fails with
        EndpointNotRunningError when the endpoint ends first."""
        future: Future[T] = Future()
        self.main_thread.execute(lambda: future.complete_with(function), "call_async", future.fail)
        return future

    def schedule_run_async(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        """Runs the action in the main thread, in ``delay_s`` seconds."""
        return self.main_thread.schedule(delay_s, action)

    def run_in_background(self, action: Callable[[], T]) -> Future[T]:
        """Runs the action, which may block, in another thread. The future completes in the main
        thread."""
        return self.service.run_in_background(self, action)

    def in_main_thread(self, future: Future[T]) -> Future[T]:
        """Returns a future with the same outcome that completes in this endpoint's main thread,
        wherever ``future`` was completed."""
        here: Future[T] = Future()

        def hand_over(done: Future[T]) -> None:
            if self.main_thread.is_here():
                done.forward_to(here)
            else:
                self.main_thread.execute(lambda: done.forward_to(here), "hand over")

        future.add_done_callback(hand_over)
        return here

    def spawn(self, coroutine: Coroutine[Future[Any], None, T]) -> Future[T]:
        """Drives a coroutine in the main thread; wherever it awaits an open future, other messages
        run.

        An error that it raises is in the returned future, and nowhere else: look at it.
        """
        result: Future[T] = Future()

        def step() -> None:
            try:
                awaited = coroutine.send(None)
            except StopIteration as stop:
                result.complete(stop.value)
            except Exception as error:
                result.fail(error)
            else:
                awaited.add_done_callback(resume)

        def resume(_: Future[Any]) -> None:
            if self.main_thread.is_here():
                step()
            else:
                self.main_thread.execute(step, "resume coroutine")

        step()
        return result

    def run_coroutine(self, coroutine: Coroutine[Future[Any], None, object]) -> None:
        """Like ``spawn``, for a coroutine whose outcome nobody waits for: an error that it raises
        escapes from the main thread."""

        def ended(done: Future[object]) -> None:
            done.result(timeout=0)

        self.spawn(coroutine).add_done_callback(ended)

    # -- others ------------------------------------------------------------------------------------

    def connect(
        self, address: str, gateway: type[G], token: FencingToken | None = None
    ) -> Future[G]:
        """Returns a gateway to another endpoint; its futures complete in this endpoint's main
        thread."""
        return self.service.connect(self, address, gateway, token)

    # -- being called ------------------------------------------------------------------------------

    def admit(self, method: str, token: FencingToken | None) -> None:
        """Returns if the call may be carried out now, or raises an RpcError that says why not. Only
        services call this, in the main thread."""
        self.main_thread.assert_here()
        if self.lifecycle.state is not EndpointState.STARTED:
            raise EndpointNotRunningError(
                f"{self.address} is {self.lifecycle.state.name.lower()}: {method} refused"
            )
        if method not in gateway_methods(self.gateway):
            raise RpcError(
                f"{self.address} has no method {method} in its gateway {self.gateway.__name__}"
            )
        self.check_token(method, token)

    def invoke(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carries out an admitted call. Returns a value, or a Future of it. Only services call
        this, in the main thread."""
        value = getattr(self, method)(*args, **kwargs)
        return self.spawn(value) if type(value) is CoroutineType else value

    def check_token(self, method: str, token: FencingToken | None) -> None:
        """Accepts any token; :class:`FencedRpcEndpoint` does not."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.address} {self.lifecycle.state.name}>"


class FencedRpcEndpoint(RpcEndpoint):
    """An endpoint that leads under a token and refuses messages for another term. Without a token
    it refuses all messages."""

    def __init__(self, service: RpcService, name: str, token: FencingToken | None = None) -> None:
        self.token = token
        super().__init__(service, name)

    def check_token(self, method: str, token: FencingToken | None) -> None:
        if self.token is None:
            raise FencingError(f"{self.address} has no leadership: {method} refused")
        if token != self.token:
            raise FencingError(
                f"{self.address} leads as {self.token:.8}, the call of {method} is for "
                f"{token or 'nobody'}"
            )
