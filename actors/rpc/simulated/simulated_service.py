"""The RpcService of simulated processes, all on one :class:`SimulatedNetwork`. Endpoints cannot
tell it from threads or Ray.

An event belongs to the endpoint or process it runs in, so the events of a crashed process do not
run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from flinkpy.actors.rpc.base_service import BaseRpcService, EndpointHost, OnFatal, Reply, Watch
from flinkpy.actors.rpc.delivery.asks import PendingAsk
from flinkpy.actors.rpc.delivery.envelope import Message, Request, RpcAnswer, RpcInvocation
from flinkpy.actors.rpc.delivery.message_bytes import make_answer
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint
from flinkpy.actors.rpc.simulated.network_port import ProcessNetwork
from flinkpy.core.errors import EngineError
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory
from flinkpy.core.lifecycles import EndpointState
from flinkpy.core.options.engine import RpcConfig

T = TypeVar("T")


class SimulatedHost(EndpointHost):
    """An endpoint whose main thread is a place in the event queue."""

    def __init__(self, service: SimulatedRpcService, endpoint: HostedEndpoint) -> None:
        super().__init__(service, endpoint)
        self.alive = True
        self._process, self._network = service, service.network
        self._early: list[tuple[Callable[[], object], str]] = []  # actions that came before START
        self._refusals: dict[Callable[[], object], Callable[[], object]] = {}

    def execute(
        self,
        action: Callable[[], object],
        description: str = "",
        on_refused: Callable[[Exception], object] | None = None,
    ) -> None:
        if on_refused is not None:
            action = self._to_refuse(action, description, on_refused)
        if self.endpoint.lifecycle.state is EndpointState.CREATED:
            self._early.append((action, description))
        elif self.alive:
            self._network.schedule(0.0, action, f"{self.address} {description}", self)
        elif on_refused is not None and self._process.alive:
            on_refused(self.refusal(f"{description} dropped"))

    def _to_refuse(
        self,
        action: Callable[[], object],
        description: str,
        on_refused: Callable[[Exception], object],
    ) -> Callable[[], object]:
        """Remembers to call ``on_refused`` if the endpoint ends before the action has run."""

        def run() -> None:
            del self._refusals[run]
            action()

        self._refusals[run] = lambda: on_refused(self.refusal(f"{description} dropped"))
        return run

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        if self.endpoint.lifecycle.state is EndpointState.CREATED:
            action = partial(self.execute, action, "early timer")
        return self._network.schedule(delay_s, action, f"{self.address} timer", self)

    def is_here(self) -> bool:
        return self._network.current is self

    def assert_here(self) -> None:
        if (
            self._network.current is not self
            and self.endpoint.lifecycle.state is not EndpointState.CREATED
        ):
            raise EngineError(
                f"{self.address}: called from "
                f"{self._network.current or 'outside of the simulation'}, not in its main "
                "thread"
            )

    def deliver(self, call: RpcInvocation, reply: Reply | None) -> None:
        self._network.run_at(self, partial(self.carry_out, call, reply))

    def escaped(self, error: Exception) -> bool:
        return self._process.handles_fatal(self.address, error)

    def _launch(self) -> None:
        self.execute(self.run_on_start, "START")
        early, self._early = self._early, []
        for action, description in early:
            self.execute(action, description)

    def _close(self) -> None:
        self.alive = False
        refusals, self._refusals = self._refusals, {}
        for refuse in refusals.values():
            refuse()

    def __repr__(self) -> str:
        return self.address


class SimulatedRpcService(BaseRpcService):
    """One process of a :class:`SimulatedNetwork`, created by its ``service(name)``.

    An error that escapes from a main thread ends the run with a SimulationError, unless
    ``on_fatal`` takes it."""

    def __init__(
        self, network: ProcessNetwork, process: str, config: RpcConfig, on_fatal: OnFatal | None
    ) -> None:
        self.network = network
        self.alive = True
        self.watches: list[Watch] = []  # of other processes, on the end of this one
        self._stopped: Future[None] | None = None
        super().__init__(
            process,
            network.clock,
            IdFactory(network.random.getrandbits(64)),
            config,
            on_fatal,
            network.request_ids,
        )

    def make_host(self, endpoint: HostedEndpoint) -> EndpointHost:
        return SimulatedHost(self, endpoint)

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        """Schedules an action of the process, not of an endpoint (such as a simulated task's): it
        dies with the process."""
        return self.network.schedule(delay_s, action, f"{self.process} timer", self)

    # -- in and out --------------------------------------------------------------------------------

    def transmit(self, process: str, request: Request) -> None:
        self.network.send(self, process, request)

    def arrive(self, sender: str, message: Message) -> None:
        """Takes a message of the process ``sender``."""
        if isinstance(message, RpcAnswer):
            self.asks.answer(message.request_id, message.value, message.error)
        elif message.request_id is None:
            self.receive(message, None)
        else:
            self.receive(message, partial(self._answer, sender, message.request_id))

    def _answer(
        self, sender: str, request_id: int, value: object, error: BaseException | None
    ) -> None:
        self.network.send(self, sender, make_answer(request_id, value, error))

    def finish(self, ask: PendingAsk, value: object, error: BaseException | None) -> None:
        """Completes the ask. The current event is the answer's arrival: no other event is needed to
        get into the caller's main thread."""
        complete: Callable[[], object] = (
            partial(ask.future.fail, error)
            if error is not None
            else partial(ask.future.complete, value)
        )
        if ask.caller is None:
            complete()
        elif isinstance(ask.caller, SimulatedHost) and ask.caller.alive:
            self.network.run_at(ask.caller, complete)

    def run_in_background(self, caller: HostedEndpoint, function: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            try:
                outcome = Future.completed(function())
            except Exception as error:
                outcome = Future.failed(error)
            caller.main_thread.execute(partial(outcome.forward_to, future), "background result")

        self.network.schedule(
            self.network.background_delay(), run, f"{self.process} background", self
        )
        return future

    def watch(
        self, caller: HostedEndpoint, address: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        return self.network.watch(caller, address.rpartition("/")[0], on_death)

    # -- the end -----------------------------------------------------------------------------------

    def stop(self) -> Future[None]:
        if self._stopped is None:
            self._stopped = self.stop_endpoints().then(self._after_endpoints)
        return self._stopped

    def _after_endpoints(self, _: None) -> None:
        self.asks.close(f"the rpc service {self.process} has stopped")
        self.vanish()
        self.network.leave(self)

    def vanish(self) -> None:
        """The process crashes: nothing runs in it any more, and no call is answered."""
        self.alive = False
        for host in self._hosts.values():
            assert isinstance(host, SimulatedHost)
            host.alive = False

    def fatal(self, address: str, error: BaseException) -> None:
        if not self.handles_fatal(address, error):
            raise error

    def handles_fatal(self, address: str, error: BaseException) -> bool:
        if self.is_handled(address, error):
            return True
        if self.on_fatal is None:
            return False
        self.on_fatal(address, error)
        return True

    def escaped(self, error: Exception) -> bool:
        return self.handles_fatal(self.process, error)
