"""Calls under way: the line that a gateway sends over, and the asks that wait for an answer."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from flinkpy.actors.rpc.delivery.envelope import PROTOCOL_VERSION, Handshake, Request, RpcInvocation
from flinkpy.actors.rpc.service import Cancellable, MainThread
from flinkpy.core.clock import Clock
from flinkpy.core.errors import EndpointNotRunningError, EngineError, RpcError, RpcTimeoutError
from flinkpy.core.futures import Future
from flinkpy.core.ids import FencingToken


class PendingAsk(NamedTuple):
    """One ask without an answer yet. Its future is completed in the main thread of ``caller``, or
    in any thread if that is None."""

    future: Future[Any]
    caller: MainThread | None
    address: str
    method: str


class PendingAsks:
    """The open asks of one service. All have the same timeout, so their deadlines form a queue and
    one timer serves them all.

    ``finish`` is called once for each ask, with its value or error: answers that come late or twice
    are ignored."""

    def __init__(
        self,
        clock: Clock,
        timeout_s: float,
        schedule: Callable[[float, Callable[[], object]], Cancellable],
        finish: Callable[[PendingAsk, Any, BaseException | None], None],
        request_ids: itertools.count[int] | None = None,
    ) -> None:
        self._clock = clock
        self._timeout_s = timeout_s
        self._schedule = schedule
        self._finish = finish
        self._request_ids = request_ids if request_ids is not None else itertools.count(1)
        self._open: dict[int, PendingAsk] = {}
        # ids only: an answered ask must not keep its answer alive until the deadline
        self._deadlines: deque[tuple[float, int]] = deque()
        self._armed = False
        self._lock = threading.Lock()
        self.closed: str | None = None  # why no more asks are sent
        # what all are told then, if the process has ended by itself
        self._ended: RpcError | None = None

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
        """Completes the ask. Returns False when it is not open: the answer came late, or twice."""
        ask = self._open.pop(request_id, None)
        if ask is None:
            return False
        self._finish(ask, value, error)
        return True

    def drop_unsent(self, request_id: int) -> None:
        """Forgets an ask whose call could not be sent, so that no answer will come."""
        self._open.pop(request_id, None)

    def fail(self, make_error: Callable[[PendingAsk], BaseException | None]) -> None:
        """Fails every open ask for which ``make_error`` returns an error."""
        for request_id, ask in list(self._open.items()):
            error = make_error(ask)
            if error is not None:
                self.answer(request_id, None, error)

    def close(self, reason: str, error: RpcError | None = None) -> None:
        """Fails the open asks and all later ones: with ``error`` if it is given."""
        self.closed, self._ended = reason, error
        self.fail(lambda ask: self.refusal(f"{ask.method} at {ask.address} not answered"))

    def refusal(self, what: str) -> RpcError:
        """Why nothing is asked any more."""
        return self._ended or EndpointNotRunningError(f"{self.closed}: {what}")

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
            # before looking again, so that an ask opened meanwhile arms the timer or is seen below
            self._armed = False
        for request_id in overdue:
            ask = self._open.get(request_id)
            if ask is not None:
                self.answer(
                    request_id,
                    None,
                    RpcTimeoutError(
                        f"{ask.method} at {ask.address}: no answer within {self._timeout_s:g} s"
                    ),
                )
        if self._deadlines:
            self._arm()


class RpcLine:
    """Carries the calls of a gateway: from one caller to one endpoint, under one token.

    ``transmit(process, request)`` sends a request to another process, and answers come back through
    ``asks``. ``sender`` is the name of this process."""

    __slots__ = (
        "_asks",
        "_sender",
        "_transmit",
        "address",
        "caller",
        "endpoint",
        "process",
        "token",
    )

    def __init__(
        self,
        asks: PendingAsks,
        transmit: Callable[[str, Request], None],
        sender: str,
        caller: MainThread | None,
        address: str,
        token: FencingToken | None,
    ) -> None:
        process, _, endpoint = address.rpartition("/")
        if not process or not endpoint:
            raise EngineError(f"{address!r} is no address; write process/endpoint")
        self._asks = asks
        self._transmit = transmit
        self._sender = sender
        self.caller = caller
        self.address = address
        self.token = token
        self.process, self.endpoint = process, endpoint

    def tell(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._transmit(self.process, RpcInvocation(self.endpoint, method, args, kwargs, self.token))

    def ask(self, method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[Any]:
        asks = self._asks
        if asks.closed is not None:
            return Future.failed(asks.refusal(f"{method} at {self.address} not sent"))
        request_id, future = asks.open(self.caller, self.address, method)
        try:
            self._transmit(
                self.process,
                RpcInvocation(self.endpoint, method, args, kwargs, self.token, request_id),
            )
        except BaseException:
            asks.drop_unsent(request_id)
            raise
        return future

    def handshake(self, gateway: str) -> Future[Any]:
        """Asks whether the endpoint exists, speaks this version and has that gateway."""
        asks = self._asks
        if asks.closed is not None:
            return Future.failed(asks.refusal(f"no connection to {self.address}"))
        request_id, future = asks.open(self.caller, self.address, "handshake")
        self._transmit(
            self.process,
            Handshake(self.endpoint, gateway, PROTOCOL_VERSION, request_id, self._sender),
        )
        return future
