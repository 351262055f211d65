"""Who leads, and under which token: a port for elections and their listeners, and the implementation where nobody else stands.

A contender leads from ``grant_leadership(token)`` to ``revoke_leadership()``; each term has a fresh token. It confirms a grant once it is ready
to serve, and only then listeners hear of (address, token). An implementation for high availability (a lease in a store, say) does the
same over several processes; endpoints will not see the difference.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

from flinkpy.core.ids import FencingToken, IdFactory


class LeaderInformation(NamedTuple):
    """Where the leader is, and its token. Both None: nobody leads."""

    address: str | None
    token: FencingToken | None


NO_LEADER = LeaderInformation(None, None)


class LeaderContender(Protocol):
    """Who stands for election. The calls come from whatever thread: an endpoint hands them to its main thread."""

    @property
    def address(self) -> str: ...

    def grant_leadership(self, token: FencingToken) -> None:
        """Leads from now on under this token; ``confirm`` it when ready to serve."""
        ...

    def revoke_leadership(self) -> None:
        """Leads no more."""
        ...


class LeaderElectionService(ABC):
    """The contender's side, for one component (the Dispatcher, the ResourceManager, a job)."""

    @abstractmethod
    def start(self, contender: LeaderContender) -> None: ...

    @abstractmethod
    def confirm(self, token: FencingToken, address: str) -> None:
        """The contender serves under this token at this address. A token of a past term is ignored."""

    @abstractmethod
    def has_leadership(self, token: FencingToken) -> bool: ...

    @abstractmethod
    def stop(self) -> None:
        """Withdraws; a leader is revoked first."""


class LeaderRetrievalService(ABC):
    """The listeners' side, for one component."""

    @abstractmethod
    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        """Tells the listener of the leader, now if there is one, and at each change."""

    @abstractmethod
    def stop(self) -> None: ...


class StandaloneLeadership(LeaderElectionService):
    """The only contender there is: leads at once, under a fresh token (or the ``token`` it is given, where others know it beforehand)."""

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

    def retrieval(self) -> LeaderRetrievalService:
        """For a listener in the same process."""
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
        return f"<StandaloneLeadership: {self._known.address or 'nobody'} leads, {len(self._listeners)} listeners>"


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
    """The listeners' side where address and token are given: a worker that is told at its start whom to register with."""

    def __init__(self, address: str, token: FencingToken) -> None:
        self._leader = LeaderInformation(address, token)

    def start(self, listener: Callable[[LeaderInformation], None]) -> None:
        listener(self._leader)

    def stop(self) -> None:
        """Nothing to end."""
