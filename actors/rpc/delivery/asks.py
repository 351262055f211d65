"""Calls on their way: the line a gateway sends over, the asks that wait for an answer, and errors made fit to travel."""

from __future__ import annotations

import itertools
import pickle
import threading
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from flinkpy.actors.rpc.delivery.envelope import PROTOCOL_VERSION, Handshake, RpcInvocation
from flinkpy.actors.rpc.service import Cancellable, MainThread
from flinkpy.core.clock import Clock
from flinkpy.core.errors import EndpointNotRunningError, EngineError, FlinkpyError, RemoteError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken

if TYPE_CHECKING:
    from flinkpy.actors.rpc.base_service import BaseRpcService


class PendingAsk(NamedTuple):
    """One ask without an answer yet. Its future is completed in ``caller``, or anywhere where there is none."""

    future: Future[Any]
    caller: MainThread | None
    address: str
    method: str


class PendingAsks:
    """The open asks of one service. All have the same timeout, so their deadlines form a queue and one timer serves them all.

    ``finish`` is called once for each ask, with its value or error: answers that come late or twice find nothing.
    """

    def __init__(
        self, clock: Clock, timeout_s: float, schedule: Callable[[float, Callable[[], object]], Cancellable],
        finish: Callable[[PendingAsk, Any, BaseException | None], None], request_ids: itertools.count[int] | None = None,
    ) -> None:
        self._clock, self._timeout_s, self._schedule, self._finish = clock, timeout_s, schedule, finish
        self._request_ids = request_ids if request_ids is not None else itertools.count(1)
        self._open: dict[int, PendingAsk] = {}
        self._deadlines: deque[tuple[float, int]] = deque()  # ids only: an answered ask must not keep its answer alive until the deadline
        self._armed = False
        self._lock = threading.Lock()
        self.closed: str | None = None  # why no more asks are sent

    def __len__(self) -> int:
        return len(self._open)

    def open(self, caller: MainThread | None, address: str, method: str) -> tuple[int, Future[Any]]:
        request_id = next(self._request_ids)
        future: Future[Any] = Future()
        self._open[request_id] = PendingAsk(future, caller, address, method)
        self._deadlines.append((self._clock.monotonic() + self._timeout_s, request_id))
        if not self._armed:
            self._arm()
        return request_id, future

    def answer(self, request_id: int, value: Any, error: BaseException | None) -> bool:
        """False when nobody waits (any more): a late or doubled answer."""
        ask = self._open.pop(request_id, None)
        if ask is None:
            return False
        self._finish(ask, value, error)
        return True

    def forget(self, request_id: int) -> None:
        """The call was never sent."""
        self._open.pop(request_id, None)

    def fail(self, make_error: Callable[[PendingAsk], BaseException | None]) -> None:
        """Fails every open ask for which ``make_error`` gives an error."""
        for request_id, ask in list(self._open.items()):
            error = make_error(ask)
            if error is not None:
                self.answer(request_id, None, error)

    def close(self, reason: str) -> None:
        """Nobody is asked any more, and what is open fails."""
        self.closed = reason
        self.fail(lambda ask: EndpointNotRunningError(f"{reason}: {ask.method} at {ask.address} not answered"))

    def _arm(self) -> None:
        with self._lock:
            deadline = self._next_deadline()
            if self._armed or deadline is None:
                return
            self._armed = True
        self._schedule(max(0.0, deadline - self._clock.monotonic()), self._sweep)

    def _next_deadline(self) -> float | None:
        while self._deadlines and self._deadlines[0][1] not in self._open:
            self._deadlines.popleft()
        return self._deadlines[0][0] if self._deadlines else None

    def _sweep(self) -> None:
        now = self._clock.monotonic()
        overdue = []
        with self._lock:
            while self._deadlines and self._deadlines[0][0] <= now:
                overdue.append(self._deadlines.popleft()[1])
            self._armed = False  # before looking again: who opens an ask meanwhile arms, or is seen here
        for request_id in overdue:
            ask = self._open.get(request_id)
            if ask is not None:
                self.answer(request_id, None, RpcTimeoutError(f"{ask.method} at {ask.address}: no answer within {self._timeout_s:g} s"))
        if self._deadlines:
            self._arm()


class RpcLine:
    """One caller, one endpoint, one token: what a gateway sends over."""

    __slots__ = ("_service", "address", "caller", "endpoint", "process", "token")

    def __init__(self, service: BaseRpcService, caller: MainThread | None, address: str, token: FencingToken | None) -> None:
        process, _, endpoint = address.rpartition("/")
        if not process or not endpoint:
            raise EngineError(f"{address!r} is no address; write process/endpoint")
        self._service, self.caller, self.address, self.token = service, caller, address, token
        self.process, self.endpoint = process, endpoint

    def tell(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._service.transmit(self.process, RpcInvocation(self.endpoint, method, args, kwargs, self.token))

    def ask(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        service = self._service
        if service.asks.closed is not None:
            return Future.failed(EndpointNotRunningError(f"{service.asks.closed}: {method} at {self.address} not sent"))
        request_id, future = service.asks.open(self.caller, self.address, method)
        try:
            service.transmit(self.process, RpcInvocation(self.endpoint, method, args, kwargs, self.token, request_id))
        except BaseException:
            service.asks.forget(request_id)
            raise
        return future

    def handshake(self, gateway: str) -> Future[Any]:
        """Asks whether the other side is there, speaks our version and is such a gateway."""
        service = self._service
        if service.asks.closed is not None:
            return Future.failed(EndpointNotRunningError(f"{service.asks.closed}: no connection to {self.address}"))
        request_id, future = service.asks.open(self.caller, self.address, "handshake")
        service.transmit(self.process, Handshake(self.endpoint, gateway, PROTOCOL_VERSION, request_id, service.process))
        return future


# -- errors that travel -------------------------------------------------------------------------------------------------------------


def portable(error: BaseException) -> FlinkpyError:
    """The error as a caller may see it: flinkpy's own as they are, with a ``remote_traceback``; anything else, and what does
    not pickle, as a RemoteError that tells the same."""
    text = remote_traceback_of(error) or "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if isinstance(error, FlinkpyError) and _pickles(error):
        return with_remote_traceback(error, text)
    return RemoteError(f"{type(error).__name__}: {error}", text)


def remote_traceback_of(error: BaseException) -> str:
    """The traceback of the process an error came from; empty for one that never travelled."""
    return str(getattr(error, "remote_traceback", ""))


def with_remote_traceback(error: FlinkpyError, text: str) -> FlinkpyError:
    error.remote_traceback = text  # type: ignore[attr-defined]  # no add_note before Python 3.11
    return error


def _pickles(error: BaseException) -> bool:
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:  # whatever a foreign __reduce__ or __init__ raises
        return False
