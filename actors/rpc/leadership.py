"""Which endpoint leads, and under which token: a port for elections and their listeners, and the
implementation for a single contender.

A contender leads from ``grant_leadership(token)`` to ``revoke_leadership()``; each term has a fresh
token. It confirms a grant once it is ready to serve, and only then listeners get (address, token).
An implementation for high availability (say, a lease in a store) does the same over several
processes; endpoints see no difference."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

from flinkpy.actors.rpc.endpoint import FencedRpcEndpoint
from flinkpy.actors.rpc.service import RpcService
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken, IdFactory

G = TypeVar("G")


class LeaderInformation(NamedTuple):
    """Where the leader is, and its token. Both None: there is no leader."""

    address: str | None
    token: FencingToken | None


NO_LEADER = LeaderInformation(None, None)


class LeaderContender(Protocol):
    """Stands for election. The calls come in any thread: an endpoint hands them to its main
    thread."""

    @property
    def address(self) -> str: ...

    def grant_leadership(self, token: FencingToken) -> None:
        """From now on the contender leads under this token. It calls ``confirm`` with the token
        when it is ready to serve."""
        ...

    def revoke_leadership(self) -> None:
        """The contender does not lead any more."""
        ...


class LeaderElectionService(ABC):
    """The contender's side, for one component (the Dispatcher, the ResourceManager, a job)."""

    @abstractmethod
    def start(self, contender: LeaderContender) -> None: ...

    @abstractmethod
    def confirm(self, token: FencingToken, address: str) -> None:
        """The contender serves under this token at this address. A token of a past term is
        ignored."""

    @abstractmethod
    def has_leadership(self, token: FencingToken) -> bool: ...

    @abstractmethod
    def stop(self) -> None:
        """Withdraws the contender; if it leads, its leadership is revoked first."""


class LeaderRetrievalService(ABC):
    """The listeners' side, for one component."""

    @abstractmethod
    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        """Calls the listener with the leader, now if there is one, and at each change."""

    @abstractmethod
    def stop(self) -> None: ...


class StandaloneLeadership(LeaderElectionService):
    """The election of a single contender: it leads at once, under a fresh token (or under
    ``token``, where others must know it beforehand)."""

    def __init__(self, ids: IdFactory, token: FencingToken | None = None) -> None:
        self._ids, self._given = ids, token
        self._contender: LeaderContender | None = None
        self._token: FencingToken | None = None
        self._known = NO_LEADER
        self._listeners: list[Callable[[LeaderInformation], None]] = []

    def start(self, contender: LeaderContender) -> None:
        self._contender = contender
        self._token = self._given or self._ids.fencing_token()
        contender.grant_leadership(self._token)

    def confirm(self, token: FencingToken, address: str) -> None:
        if self.has_leadership(token):
            self._publish(LeaderInformation(address, token))

    def has_leadership(self, token: FencingToken) -> bool:
        return self._token is not None and token == self._token

    def stop(self) -> None:
        contender, self._contender, self._token = self._contender, None, None
        if contender is not None:
            contender.revoke_leadership()
            self._publish(NO_LEADER)

    @property
    def token(self) -> FencingToken | None:
        """The token of the present term; None while there is no contender."""
        return self._token

    def retrieval(self) -> LeaderRetrievalService:
        """Returns the retrieval for a listener in the same process."""
        return _Retrieval(self)

    def add_listener(self, listener: Callable[[LeaderInformation], None]) -> None:
        self._listeners.append(listener)
        if self._known != NO_LEADER:
            listener(self._known)

    def remove_listener(self, listener: Callable[[LeaderInformation], None]) -> None:
        if listener in self._listeners:
            self._listeners.remove(listener)

    def _publish(self, leader: LeaderInformation) -> None:
        if leader != self._known:
            self._known = leader
            for listener in list(self._listeners):
                listener(leader)

    def __repr__(self) -> str:
        return (
            f"<StandaloneLeadership: {self._known.address or 'nobody'} leads, "
            f"{len(self._listeners)} listeners>"
        )


class _Retrieval(LeaderRetrievalService):
    def __init__(self, leadership: StandaloneLeadership) -> None:
        self._leadership = leadership
        self._listener: Callable[[LeaderInformation], None] | None = None

    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        self._listener = listener
        self._leadership.add_listener(listener)

    def stop(self) -> None:
        if self._listener is not None:
            self._leadership.remove_listener(self._listener)


class FixedLeader(LeaderRetrievalService):
    """A retrieval whose leader is given: for a worker that gets address and token when it
    starts."""

    def __init__(self, address: str, token: FencingToken) -> None:
        self._leader = LeaderInformation(address, token)

    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        listener(self._leader)

    def stop(self) -> None:
        """Does nothing."""


def first_leader(retrieval: LeaderRetrievalService) -> Future[LeaderInformation]:
    """Returns the leader, as soon as there is one: for clients that stay with one term."""
    found: Future[LeaderInformation] = Future()

    def on_leader(leader: LeaderInformation) -> None:
        if leader != NO_LEADER:
            found.complete(leader)

    retrieval.start(on_leader)
    found.add_done_callback(lambda _: retrieval.stop())
    return found


def connect_to_leader(
    service: RpcService, retrieval: LeaderRetrievalService, gateway: type[G]
) -> Future[G]:
    """Returns a gateway to the leader, in its present term, for a client that is no endpoint."""
    connected: Future[G] = Future()

    def connect(found: Future[LeaderInformation]) -> None:
        address, token = found.result(timeout=0)
        assert address is not None
        service.connect(None, address, gateway, token).forward_to(connected)

    first_leader(retrieval).add_done_callback(connect)
    return connected


class LeadingEndpoint(FencedRpcEndpoint):
    """Stands for election from its start to its stop, and answers calls only under the token of its
    term. Subclasses begin their work in ``on_leadership``."""

    def __init__(
        self, service: RpcService, name: str, election: LeaderElectionService | None = None
    ) -> None:
        super().__init__(service, name)
        self._election = election or StandaloneLeadership(service.ids)

    def on_start(self) -> None:
        self._election.start(self)

    def on_stop(self) -> Future[None] | None:
        self._election.stop()
        return None

    def grant_leadership(self, token: FencingToken) -> None:
        self._in_main_thread(lambda: self._lead(token))

    def _lead(self, token: FencingToken) -> None:
        self.token = token
        self.on_leadership()
        self._election.confirm(token, self.address)

    def revoke_leadership(self) -> None:
        self._in_main_thread(self._follow)

    def _follow(self) -> None:
        self.token = None

    def _in_main_thread(self, action: Callable[[], None]) -> None:
        if self.main_thread.is_here():
            action()
        else:
            self.run_async(action)

    def on_leadership(self) -> None:
        """Runs in the main thread when this endpoint becomes leader."""
