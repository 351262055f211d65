"""Heartbeats: each side of a pair learns that the other one lives, and gets a payload along with
it.

One side (the ResourceManager or the JobMaster) sends a request every ``interval_s``; the other side
answers each request with its payload. Both watch for silence: a target not heard of for
``timeout_s`` is reported once and not monitored any more. In the gateways a heartbeat is a tell in
either direction, so a lost one costs only its own interval:

    ResourceManager                                     TaskExecutor
    every interval:
    gateway.heartbeat_from_resource_manager(id)    ->   manager.request_received(id), which answers:
    manager.answer_received(id, payload)    <-   gateway.heartbeat_from_task_executor(id, payload)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from flinkpy.actors.rpc.endpoint import RpcEndpoint
from flinkpy.actors.rpc.service import Cancellable, Timers
from flinkpy.core.clock import Clock
from flinkpy.core.ids import ResourceId
from flinkpy.core.options.engine import RpcConfig

P = TypeVar("P")
# two intervals may pass without a request, so the timeout has to be longer than that
SPARING = 3


@dataclass(frozen=True)
class HeartbeatStatistics:
    targets: int
    requests_sent: int
    beats_received: int
    timeouts: int


class HeartbeatManager(Generic[P]):
    """Watches any number of targets. It belongs to the main thread of one endpoint, of which
    ``timers`` are.

    With an ``interval_s`` it is the requesting side. ``on_timeout(target)`` reports a silent
    target, ``on_payload(target, payload)`` passes on the payload of an answer."""

    def __init__(
        self,
        timers: Timers,
        clock: Clock,
        timeout_s: float,
        on_timeout: Callable[[ResourceId], None],
        on_payload: Callable[[ResourceId, P], None] | None = None,
        interval_s: float | None = None,
    ) -> None:
        self._timers = timers
        self._clock = clock
        self._timeout_s = timeout_s
        self._interval_s = interval_s
        self._on_timeout, self._on_payload = on_timeout, on_payload
        self._beats: dict[ResourceId, Callable[[], None]] = {}
        # the longest silent one is first: one timer serves all
        self._heard: dict[ResourceId, float] = {}
        self._check: Cancellable | None = None
        self._tick: Cancellable | None = None
        self._requests = self._received = self._timeouts = 0
        # that have sent their payload since the last requests, without being asked
        self._came_unasked: set[ResourceId] = set()

    # -- targets -----------------------------------------------------------------------------------

    def monitor(self, target: ResourceId, beat: Callable[[], None]) -> None:
        """Watches the target from now on. ``beat`` sends it this side's heartbeat: a request every
        interval, or the answer to each request."""
        self._beats[target] = beat
        self._touch(target)
        if self._check is None:
            self._check = self._timers.schedule(self._timeout_s, self._check_silence)
        if self._interval_s is not None and self._tick is None:
            self._tick = self._timers.schedule(0.0, self._request_all)

    def unmonitor(self, target: ResourceId) -> None:
        """Stops watching the target; an unknown one is ignored."""
        self._beats.pop(target, None)
        self._heard.pop(target, None)
        self._came_unasked.discard(target)
        if not self._beats:
            self.stop()

    @property
    def targets(self) -> tuple[ResourceId, ...]:
        return tuple(self._beats)

    def last_heard(self, target: ResourceId) -> float:
        """When the target was last heard, or began to be watched, on the monotonic clock. KeyError
        if it is not watched."""
        return self._heard[target]

    def stop(self) -> None:
        """Forgets all targets and ends the timers."""
        self._beats.clear()
        self._heard.clear()
        for timer in (self._check, self._tick):
            if timer is not None:
                timer.cancel()
        self._check = self._tick = None

    # -- beats -------------------------------------------------------------------------------------

    def request_received(self, target: ResourceId) -> None:
        """The answering side got a request: notes that the requester lives, and answers."""
        if target in self._beats:
            self._touch(target)
            self._beats[target]()

    def answer_received(self, target: ResourceId, payload: P | None = None) -> None:
        """The requesting side got an answer. It ignores an answer of a target that it does not
        monitor (any more)."""
        if target in self._beats:
            self._touch(target)
            if payload is not None and self._on_payload is not None:
                self._on_payload(target, payload)

    def came_unasked(self, target: ResourceId, payload: P) -> None:
        """The requesting side got a payload with another message. It asks the target again with
        the requests after the next, if the timeout allows for that."""
        if target in self._beats:
            self._came_unasked.add(target)
            self.answer_received(target, payload)

    def _touch(self, target: ResourceId) -> None:
        self._received += 1
        self._heard.pop(target, None)
        self._heard[target] = self._clock.monotonic()

    def _request_all(self) -> None:
        assert self._interval_s is not None
        self._tick = self._timers.schedule(self._interval_s, self._request_all)
        spared, self._came_unasked = self._came_unasked, set()
        if self._timeout_s < SPARING * self._interval_s:
            spared = set()
        for target, beat in list(self._beats.items()):
            if target not in spared:
                self._requests += 1
                beat()

    # -- silence -----------------------------------------------------------------------------------

    def _check_silence(self) -> None:
        self._check = None
        now = self._clock.monotonic()
        silent = []
        for target, heard in self._heard.items():
            if heard + self._timeout_s > now:
                self._check = self._timers.schedule(
                    heard + self._timeout_s - now, self._check_silence
                )
                break
            silent.append(target)
        for target in silent:
            if target in self._beats:  # reporting an earlier one may have unmonitored it
                self._timeouts += 1
                self.unmonitor(target)
                self._on_timeout(target)

    def statistics(self) -> HeartbeatStatistics:
        return HeartbeatStatistics(len(self._beats), self._requests, self._received, self._timeouts)

    def __repr__(self) -> str:
        return f"<HeartbeatManager: {len(self._beats)} targets, {self._timeouts} timed out>"


def heartbeat_requester(
    endpoint: RpcEndpoint,
    config: RpcConfig,
    on_timeout: Callable[[ResourceId], None],
    on_payload: Callable[[ResourceId, Any], None] | None = None,
) -> HeartbeatManager[Any]:
    """Returns the requesting side, for an endpoint."""
    return HeartbeatManager(
        endpoint.main_thread,
        endpoint.service.clock,
        config.heartbeat_timeout.total_seconds(),
        on_timeout,
        on_payload,
        config.heartbeat_interval.total_seconds(),
    )


def heartbeat_responder(
    endpoint: RpcEndpoint, config: RpcConfig, on_timeout: Callable[[ResourceId], None]
) -> HeartbeatManager[Any]:
    """Returns the answering side, for an endpoint."""
    return HeartbeatManager(
        endpoint.main_thread,
        endpoint.service.clock,
        config.heartbeat_timeout.total_seconds(),
        on_timeout,
    )
