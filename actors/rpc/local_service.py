"""The RpcService of one Python process: a thread for each endpoint, messages handed over by
reference.

It is the default of embedded programs, and hosts the endpoints of each process on Ray. If several
of them in one interpreter should reach each other (two TaskExecutors in a test), make them with
:meth:`LocalRpcService.sibling`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar
from weakref import WeakSet

from flinkpy.actors.rpc.base_service import BaseRpcService, EndpointHost, OnFatal, Reply, Watch
from flinkpy.actors.rpc.delivery.envelope import Request, RpcInvocation
from flinkpy.actors.rpc.service import Cancellable, HostedEndpoint
from flinkpy.actors.rpc.threads import BackgroundThreads, Timer, TimerThread
from flinkpy.core.clock import SYSTEM_CLOCK, Clock
from flinkpy.core.errors import EndpointNotRunningError, RecipientUnreachableError
from flinkpy.core.futures import Future
from flinkpy.core.ids import IdFactory
from flinkpy.core.lifecycles import MailboxState
from flinkpy.core.mailbox import Mailbox, MailboxProcessor
from flinkpy.core.options.engine import RpcConfig
from flinkpy.core.secrets.engine_logs import engine_logger

T = TypeVar("T")

BACKGROUND_THREADS = 8

log = engine_logger("flinkpy.rpc")


class ThreadHost(EndpointHost):
    """An endpoint with a thread of its own that runs its mailbox."""

    def __init__(self, service: LocalRpcService, endpoint: HostedEndpoint) -> None:
        super().__init__(service, endpoint)
        self._schedule = service.schedule
        self._timers: WeakSet[Timer] = WeakSet()  # those that are not due yet
        self._mailbox = Mailbox(self.address)
        self._processor = MailboxProcessor(self._mailbox)
        self._thread_id: int | None = None

    def execute(
        self,
        action: Callable[[], object],
        description: str = "",
        on_refused: Callable[[Exception], object] | None = None,
    ) -> None:
        # what actions return is not used
        if not self._mailbox.put(action, description, on_refused):  # type: ignore[arg-type]
            log.debug("%s has terminated: %s dropped", self.address, description or "action")

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Cancellable:
        timer = self._schedule(delay_s, partial(self.execute, action, "timer"))
        self._timers.add(timer)
        return timer

    def is_here(self) -> bool:
        return self._thread_id == threading.get_ident()

    def assert_here(self) -> None:
        self._processor.assert_main_thread()

    def deliver(self, call: RpcInvocation, reply: Reply | None) -> None:
        self._mailbox.put(
            partial(self.carry_out, call, reply), call.method, partial(self.refuse, call, reply)
        )

    def _launch(self) -> None:
        threading.Thread(target=self._run, name=self.address, daemon=True).start()

    def _close(self) -> None:
        self._mailbox.quiesce()
        self._mailbox.close()
        # Until due, each would keep the endpoint alive, and a JobMaster its job's data
        for timer in list(self._timers):
            timer.cancel()

    def _run(self) -> None:
        self._thread_id = threading.get_ident()
        self._processor.adopt_thread()
        self.run_on_start()
        while self._mailbox.state is not MailboxState.CLOSED:
            try:
                if not self._processor.run_step():
                    self._mailbox.wait_for_mail()
            except BaseException as error:
                # also SystemExit: a handler must not silently end the thread of its endpoint
                self.service.fatal(self.address, error)


class LocalRpcService(BaseRpcService):
    """Endpoints on threads. ``process`` is its name in addresses.

    >>> service = LocalRpcService()
    >>> service.address_of("dispatcher")
    'local/dispatcher'
    """

    # frozen
    def __init__(
        self,
        clock: Clock = SYSTEM_CLOCK,
        ids: IdFactory | None = None,
        config: RpcConfig = RpcConfig(),  # noqa: B008
        process: str = "local",
        on_fatal: OnFatal | None = None,
    ) -> None:
        self._timers = TimerThread(
            f"{process}/timers", clock, partial(self.fatal, f"{process}/timers")
        )
        self._background = BackgroundThreads(f"{process}/background", BACKGROUND_THREADS)
        self._processes: dict[str, LocalRpcService] = {process: self}
        self._watches: list[Watch] = []
        self._stopped: Future[None] | None = None
        super().__init__(process, clock, ids if ids is not None else IdFactory(), config, on_fatal)

    def sibling(self, process: str, config: RpcConfig | None = None) -> LocalRpcService:
        """Returns a service that acts as another process in this interpreter: its endpoints and
        those of this one reach each other."""
        other = LocalRpcService(self.clock, self.ids, config or self.config, process, self.on_fatal)
        other._processes = self._processes
        self._processes[process] = other
        return other

    def make_host(self, endpoint: HostedEndpoint) -> EndpointHost:
        return ThreadHost(self, endpoint)

    def schedule(self, delay_s: float, action: Callable[[], object]) -> Timer:
        return self._timers.schedule(delay_s, action)

    def transmit(self, process: str, request: Request) -> None:
        reply = (
            None if request.request_id is None else partial(self.asks.answer, request.request_id)
        )
        target = self._processes.get(process)
        if target is not None:
            target.receive(request, reply)
        elif reply is not None:
            reply(
                None,
                RecipientUnreachableError(f"there is no process {process} in this interpreter"),
            )

    def run_in_background(self, caller: HostedEndpoint, function: Callable[[], T]) -> Future[T]:
        future: Future[T] = Future()

        def run() -> None:
            try:
                outcome = Future.completed(function())
            except BaseException as error:
                outcome = Future.failed(error)
            caller.main_thread.execute(partial(outcome.forward_to, future), "background result")

        if not self._background.submit(run):
            future.fail(EndpointNotRunningError(f"the rpc service {self.process} has stopped"))
        return future

    def watch(
        self, caller: HostedEndpoint, address: str, on_death: Callable[[str], object]
    ) -> Cancellable:
        process = address.rpartition("/")[0]
        watched = self._processes.get(process)
        watch = Watch(watched._watches if watched is not None else [], caller, on_death)
        if watched is None:
            watch.report(f"there is no process {process}")
        return watch

    def stop(self) -> Future[None]:
        if self._stopped is None:
            self._stopped = self.stop_endpoints().then(self._after_endpoints)
        return self._stopped

    def _after_endpoints(self, _: None) -> None:
        self._timers.stop()
        self._background.stop()
        self._processes.pop(self.process, None)
        self.asks.close(f"the rpc service {self.process} has stopped", self.ended)
        for watch in list(self._watches):
            watch.report(f"process {self.process} has stopped")
