"""What the three RpcServices share: they host endpoints, open connections, carry out calls and
answer them.

Each service adds a main thread for each endpoint (:class:`EndpointHost`) and a way to send a
request to another process (``transmit``)."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias, TypeVar

from flinkpy.actors.rpc.delivery.asks import PendingAsk, PendingAsks, RpcLine
from flinkpy.actors.rpc.delivery.envelope import (
    PROTOCOL_VERSION,
    Control,
    Handshake,
    Request,
    RpcInvocation,
)
from flinkpy.actors.rpc.delivery.portable_errors import portable
from flinkpy.actors.rpc.gateway_proxy import make_gateway
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint, MainThread, RpcService
from flinkpy.core.clock import Clock
from flinkpy.core.errors import (
    EndpointNotRunningError,
    EngineError,
    HandshakeError,
    ProcessEndedError,
    RecipientUnreachableError,
    RpcError,
)
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, IdFactory
from flinkpy.core.lifecycles import EndpointState
from flinkpy.core.options.engine import RpcConfig
from flinkpy.core.secrets.engine_logs import engine_logger

G = TypeVar("G")

Reply: TypeAlias = Callable[[Any, BaseException | None], object]
"""Answers an ask: with a value, or with an error that is fit to travel."""

OnFatal: TypeAlias = Callable[[str, BaseException], None]
"""Called with the endpoint's address and the error that escaped from its main thread."""

log = engine_logger("flinkpy.rpc")


class EndpointHost(MainThread):
    """One endpoint in its service: handles the control messages, admits calls and answers every one
    of them.

    Subclasses give it a thread: ``execute`` and the other methods of MainThread, ``_launch`` (start
    to process the mailbox, START first) and ``_close`` (accept no more, answer what is left)."""

    def __init__(self, service: BaseRpcService, endpoint: HostedEndpoint) -> None:
        self.service, self.endpoint = service, endpoint
        self.address = service.address_of(endpoint.name)
        self.stopped: Future[None] = Future()
        self._stop_requested = False
        # Asks whose handler returned a future that is still open; in their order
        self._unanswered: dict[Reply, None] = {}

    @abstractmethod
    def _launch(self) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...

    @abstractmethod
    def deliver(self, call: RpcInvocation, reply: Reply | None) -> None:
        """Has the call carried out in the main thread. May be called in any thread."""

    # -- control -----------------------------------------------------------------------------------

    def control(self, message: Control) -> None:
        """START runs in the thread that starts the endpoint; STOP and TERMINATE run in its main
        thread."""
        {Control.START: self._start, Control.STOP: self._stop, Control.TERMINATE: self._terminate}[
            message
        ]()

    def request_stop(self) -> Future[None]:
        """Stops the endpoint. May be called in any thread, any number of times."""
        if not self._stop_requested:
            self._stop_requested = True
            if self.endpoint.lifecycle.state is EndpointState.CREATED:
                self.control(Control.TERMINATE)  # on_start never ran, so on_stop must not
            else:
                self.execute(partial(self.control, Control.STOP), "STOP")
        return self.stopped

    def _start(self) -> None:
        self.endpoint.lifecycle.move(EndpointState.STARTED)
        self._launch()

    def run_on_start(self) -> None:
        """Runs ``on_start``, first of all in the main thread. If it raises, the error is fatal and
        the endpoint terminates."""
        try:
            self.endpoint.on_start()
        except Exception as error:
            self._terminate_after(error)

    def _stop(self) -> None:
        if not self.endpoint.lifecycle.try_move(EndpointState.STOPPING):
            return
        try:
            done = self.endpoint.on_stop() or Future.completed(None)
        except Exception as error:
            done = Future.failed(error)
        self.endpoint.in_main_thread(done).add_done_callback(self._on_stop_done)

    def _on_stop_done(self, done: Future[None]) -> None:
        if done.error is not None:
            self._terminate_after(done.error)
        else:
            self.control(Control.TERMINATE)

    def _terminate_after(self, error: BaseException) -> None:
        try:
            self.service.fatal(self.address, error)  # before the waiters of ``stopped`` are told
        finally:
            self.control(Control.TERMINATE)

    def _terminate(self) -> None:
        self.endpoint.lifecycle.move(EndpointState.TERMINATED)
        self.service.free_address(self)
        self._close()
        self.answer_all(self.refusal("the answer was still open"))
        self.stopped.complete(None)

    def answer_all(self, error: RpcError) -> None:
        """Fails the asks that wait for an answer. Runs in the main thread."""
        unanswered, self._unanswered = self._unanswered, {}
        for reply in unanswered:
            reply(None, error)

    def refusal(self, what: str) -> EndpointNotRunningError:
        return EndpointNotRunningError(
            f"{self.address} is {self.endpoint.lifecycle.state.name.lower()}: {what}"
        )

    # -- calls -------------------------------------------------------------------------------------

    def carry_out(self, call: RpcInvocation, reply: Reply | None) -> None:
        """Runs in the main thread. A refused tell is logged; the error of a tell that fails
        escapes: it is a bug, and fatal."""
        endpoint = self.endpoint
        try:
            endpoint.admit(call.method, call.token)
        except RpcError as refused:
            self.refuse(call, reply, refused)
            return
        if reply is None:
            value = endpoint.invoke(call.method, call.args, call.kwargs)
            if isinstance(value, Future):
                value.add_done_callback(self._check_tell)
            return
        try:
            value = endpoint.invoke(call.method, call.args, call.kwargs)
        except Exception as error:
            reply(None, portable(error))
            return
        if isinstance(value, Future):
            self._unanswered[reply] = None
            value.add_done_callback(partial(self._answer_with, reply))
        else:
            reply(value, None)

    def refuse(self, call: RpcInvocation, reply: Reply | None, error: BaseException) -> None:
        if reply is not None:
            reply(None, portable(error))
        else:
            log.debug("tell %s refused: %s", call.method, error)

    def _answer_with(self, reply: Reply, done: Future[Any]) -> None:
        # not there any more: answered when the endpoint terminated
        if self._unanswered.pop(reply, True):
            return
        if done.error is not None:
            reply(None, portable(done.error))
        else:
            reply(done.result(), None)

    def _check_tell(self, done: Future[Any]) -> None:
        if done.error is not None:
            self.service.fatal(self.address, done.error)


class Watch:
    """One endpoint that waits for the end of a process; it is in that process's list until it is
    notified or cancelled."""

    def __init__(
        self, watches: list[Watch], caller: HostedEndpoint, on_death: Callable[[str], object]
    ) -> None:
        self._watches = watches
        self.caller = caller
        self._on_death = on_death
        watches.append(self)

    def cancel(self) -> None:
        if self in self._watches:
            self._watches.remove(self)

    def report(self, reason: str) -> None:
        self.caller.main_thread.execute(partial(self._deliver, reason), "death notice")

    def _deliver(self, reason: str) -> None:
        if self in self._watches:  # not cancelled meanwhile
            self._watches.remove(self)
            self._on_death(reason)


class BaseRpcService(RpcService):
    """What all services share. ``on_fatal(address, error)`` gets the errors that escape from a
    tell's handler or a scheduled action; it may be set later, and is called in the thread where the
    error escaped."""

    def __init__(
        self,
        process: str,
        clock: Clock,
        ids: IdFactory,
        config: RpcConfig,
        on_fatal: OnFatal | None = None,
        request_ids: itertools.count[int] | None = None,
    ) -> None:
        self.clock = clock
        self.ids = ids
        self.config = config
        self._process = process
        self.on_fatal = on_fatal
        # the answer to everybody, once this process ends
        self.ended: ProcessEndedError | None = None
        self._hosts: dict[str, EndpointHost] = {}
        self.asks = PendingAsks(
            clock, config.ask_timeout.total_seconds(), self.schedule, self.finish, request_ids
        )

    # -- what a service adds -----------------------------------------------------------------------

    @abstractmethod
    def make_host(self, endpoint: HostedEndpoint) -> EndpointHost: ...

    @abstractmethod
    def transmit(self, process: str, request: Request) -> None:
        """Sends the request to that process; an answer, if one comes, goes to ``asks.answer``."""

    @abstractmethod
    def schedule(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        """Runs the action outside of any endpoint."""

    # -- the port ----------------------------------------------------------------------------------

    @property
    def process(self) -> str:
        return self._process

    def register(self, endpoint: HostedEndpoint) -> MainThread:
        if endpoint.name in self._hosts:
            raise EngineError(f"{self.address_of(endpoint.name)} is taken")
        host = self._hosts[endpoint.name] = self.make_host(endpoint)
        return host

    def start_endpoint(self, endpoint: HostedEndpoint) -> None:
        self._hosts[endpoint.name].control(Control.START)

    def stop_endpoint(self, endpoint: HostedEndpoint) -> Future[None]:
        host = endpoint.main_thread
        assert isinstance(host, EndpointHost)
        return host.request_stop()

    def connect(
        self,
        caller: HostedEndpoint | None,
        address: str,
        gateway: type[G],
        token: FencingToken | None = None,
    ) -> Future[G]:
        line = RpcLine(
            self.asks,
            self.transmit,
            self.process,
            caller.main_thread if caller is not None else None,
            address,
            token,
        )
        return line.handshake(gateway.__name__).then(lambda _: make_gateway(gateway, line))

    # -- in and out --------------------------------------------------------------------------------

    def receive(self, request: Request, reply: Reply | None) -> None:
        """Handles a request that has arrived for an endpoint of this process."""
        if self.ended is not None:
            if reply is not None:
                reply(None, self.ended)
            return
        host = self._hosts.get(request.endpoint)
        if isinstance(request, RpcInvocation):
            if host is None:
                if reply is not None:
                    reply(
                        None,
                        RecipientUnreachableError(
                            f"nobody listens at {self.address_of(request.endpoint)}: "
                            f"{request.method} not delivered"
                        ),
                    )
            elif host.endpoint.lifecycle.state is EndpointState.CREATED:
                host.refuse(
                    request, reply, host.refusal(f"{request.method} came before it was started")
                )
            else:
                host.deliver(request, reply)
        elif reply is not None:
            reply(None, self._check(request, host))

    def _check(self, handshake: Handshake, host: EndpointHost | None) -> RpcError | None:
        address = self.address_of(handshake.endpoint)
        if host is None or host.endpoint.lifecycle.state is not EndpointState.STARTED:
            state = (
                f" (it is {host.endpoint.lifecycle.state.name.lower()})" if host is not None else ""
            )
            return RecipientUnreachableError(f"nobody listens at {address}{state}")
        spoken = [kind.__name__ for kind in host.endpoint.gateway.__mro__]
        if handshake.version != PROTOCOL_VERSION or handshake.gateway not in spoken:
            return HandshakeError(
                f"{handshake.sender or 'the caller'} speaks version {handshake.version} "
                f"and wants a {handshake.gateway}, "
                f"{address} speaks version {PROTOCOL_VERSION} and is a {spoken[0]}"
            )
        return None

    def finish(self, ask: PendingAsk, value: Any, error: BaseException | None) -> None:
        """Completes an ask in its caller's main thread, or here if it has no caller."""
        finish: Callable[[], object] = (
            partial(ask.future.fail, error)
            if error is not None
            else partial(ask.future.complete, value)
        )
        if ask.caller is None:
            finish()
        else:
            ask.caller.execute(finish, "answer")

    def is_handled(self, address: str, error: BaseException) -> bool:
        """Whether the endpoint from which the error escaped handles it."""
        host = self._hosts.get(address.rpartition("/")[2])
        return (
            host is not None
            and isinstance(error, Exception)
            and host.endpoint.on_uncaught_error(error)
        )

    def fatal(self, address: str, error: BaseException) -> None:
        """An error escaped from a main thread: a bug, which is never swallowed. The endpoint
        handles it, or it is logged and goes to ``on_fatal``."""
        if self.is_handled(address, error):
            return
        log.critical("fatal error in %s", address, exc_info=error)
        if self.on_fatal is not None:
            self.on_fatal(address, error)

    def refuse_all(self, error: ProcessEndedError) -> None:
        """This process ends: whoever waits for an answer gets this error, and so does everybody who
        asks from now on. May be called in any thread."""
        self.ended = error
        for host in list(self._hosts.values()):
            host.execute(partial(host.answer_all, error), "refuse all")

    def free_address(self, host: EndpointHost) -> None:
        """Frees the address of an endpoint that terminates."""
        self._hosts.pop(host.endpoint.name, None)

    def stop_endpoints(self) -> Future[None]:
        """Stops the endpoints, the last one started first. The future completes when all have
        stopped."""
        left = [host.request_stop() for host in reversed(list(self._hosts.values()))]
        done: Future[None] = Future()

        def next_one(_: Future[None] | None = None) -> None:
            while left and left[-1].done:
                left.pop()
            if left:
                left[-1].add_done_callback(next_one)
            else:
                done.complete(None)

        next_one()
        return done

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.process}: {len(self._hosts)} endpoints, "
            f"{len(self.asks)} open asks>"
        )
