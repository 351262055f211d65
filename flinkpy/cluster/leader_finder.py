"""LeaderFinder: tells a worker which ResourceManager leads its session, also when the JobManager
has died and come back."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.actors.rpc.endpoint import NoGateway, RpcEndpoint
from flinkpy.actors.rpc.leadership import NO_LEADER, LeaderInformation, LeaderRetrievalService
from flinkpy.actors.rpc.service import Cancellable, RpcService
from flinkpy.cluster.session import SessionGateway, SessionInfo
from flinkpy.core.futures import Future


class LeaderFinder(LeaderRetrievalService):
    """Asks the session at ``address``, again whenever its process has died, and every few seconds:
    of a process that dies between its answer and the beginning of the watch, and comes back, no
    death is noticed. ``exists()`` says whether it may come back; it may block. If not, or if
    another session has taken the name since, ``on_gone()`` is called."""

    def __init__(
        self,
        service: RpcService,
        address: str,
        session_id: str,
        exists: Callable[[], bool],
        on_gone: Callable[[], None],
    ) -> None:
        self.service = service
        self.address = address
        self.session_id = session_id
        self.exists = exists
        self.on_gone = on_gone
        self._search: _Search | None = None

    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        self._search = _Search(self, listener)
        self._search.start()

    def stop(self) -> None:
        if self._search is not None:
            self._search.stop()


class _Search(RpcEndpoint):
    gateway = NoGateway
    RETRY_S, LOOK_AGAIN_S = 0.1, 10.0

    def __init__(self, finder: LeaderFinder, listener: Callable[[LeaderInformation], None]) -> None:
        super().__init__(finder.service, "leader-finder")
        self._finder = finder
        self._listener = listener
        self._told = NO_LEADER
        self._watch: Cancellable | None = None
        self._next: Cancellable | None = None

    def on_start(self) -> None:
        self._look()

    def _lost(self, reason: str) -> None:
        self._watch = None
        self._look()

    def _look_in(self, seconds: float) -> None:
        if self._next is not None:
            self._next.cancel()
        self._next = self.schedule_run_async(seconds, self._look)

    def _look(self) -> None:
        self.connect(self._finder.address, SessionGateway).compose(
            lambda session: session.describe()
        ).add_done_callback(self._described)

    def _described(self, done: Future[SessionInfo]) -> None:
        info = done.result(timeout=0) if done.error is None else None
        if info is None or info.resource_manager == NO_LEADER:
            self._look_again()
        elif info.session_id != self._finder.session_id:
            self._finder.on_gone()
        else:
            self._look_in(self.LOOK_AGAIN_S)
            if self._watch is None:
                self._watch = self.service.watch(self, self._finder.address, self._lost)
            if info.resource_manager != self._told:
                self._told = info.resource_manager
                self._listener(info.resource_manager)

    def _look_again(self) -> None:
        self.service.run_in_background(self, self._finder.exists).add_done_callback(
            self._exists_or_not
        )

    def _exists_or_not(self, done: Future[bool]) -> None:
        if done.error is None and not done.result(timeout=0):
            self._finder.on_gone()
        else:
            self._look_in(self.RETRY_S)
