"""Requests for partitions that cannot be read yet.

A consumer may ask before its producer has begun: the request waits until the partition is
registered, at most for the partition-request timeout. A blocking partition can be read when it is
written to its end; requests for it wait until then, without a limit."""

from __future__ import annotations

from typing import Protocol

from flinkpy.core.ids import ResultPartitionId
from flinkpy.core.reactor import Reactor, ReactorTimer
from flinkpy.network.partition import ReadableSubpartition
from flinkpy.network.wire.remote_channel import PartitionRequest, not_found

TIMEOUT_TICKS = 10


class Requester(Protocol):
    """The end of a channel that reads a subpartition: a gate's local channel, or the producer's end
    of a connection."""

    @property
    def released(self) -> bool:
        """Whether the consumer no longer needs the subpartition."""
        ...

    def attach(self, subpartition: ReadableSubpartition) -> None:
        """Called with the subpartition when it can be read."""
        ...

    def producer_failed(self, cause: BaseException) -> None:
        """Called if there is no subpartition, or it cannot be read to its end."""
        ...


class WaitingRequest:
    """One request, until its partition can be read."""

    def __init__(self, request: PartitionRequest, requester: Requester) -> None:
        self.request, self.requester = request, requester
        self.timer: ReactorTimer | None = None  # None: waits without a limit

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class PartitionRequests:
    """The requests of one TaskExecutor's consumers, local and remote, that wait for their
    partitions."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._waiting: dict[ResultPartitionId, list[WaitingRequest]] = {}

    def add_request(
        self, request: PartitionRequest, requester: Requester, timers: Reactor | None
    ) -> None:
        """Adds a request. With ``timers`` it fails after the timeout; without, it waits without a
        limit."""
        waiting = WaitingRequest(request, requester)
        self._waiting.setdefault(request.partition_id, []).append(waiting)
        if timers is not None:
            self._start_timeout(waiting, timers)

    def _start_timeout(self, waiting: WaitingRequest, timers: Reactor) -> None:
        """Counts the loop's own time, in ticks that count equally however late each comes. So a
        function that holds up the loop, and with it the producer's task, does not use up the
        timeout."""
        left = TIMEOUT_TICKS

        def tick() -> None:
            nonlocal left
            left -= 1
            if left:
                waiting.timer = timers.call_later(self._timeout_s / TIMEOUT_TICKS, tick)
            else:
                self._forget_request(waiting)
                if not waiting.requester.released:
                    waiting.requester.producer_failed(not_found(waiting.request))

        waiting.timer = timers.call_later(self._timeout_s / TIMEOUT_TICKS, tick)

    def stop_timeouts(self, partition_id: ResultPartitionId) -> None:
        """Called when the partition is being written: its requests now wait for its end, without a
        limit."""
        for waiting in self._waiting.get(partition_id, ()):
            waiting.stop_timer()

    def take_requests(self, partition_id: ResultPartitionId) -> list[WaitingRequest]:
        """Removes the requests for that partition, and returns those whose consumers still need
        it."""
        taken = self._waiting.pop(partition_id, [])
        for waiting in taken:
            waiting.stop_timer()
        return [waiting for waiting in taken if not waiting.requester.released]

    def fail_requests(self, partition_id: ResultPartitionId, cause: BaseException | None) -> None:
        """Called when the partition will never be there."""
        for waiting in self.take_requests(partition_id):
            waiting.requester.producer_failed(cause or not_found(waiting.request))

    def drop_released(self) -> None:
        """Drops the requests of consumers that no longer need their partitions."""
        for requests in list(self._waiting.values()):
            for waiting in [each for each in requests if each.requester.released]:
                waiting.stop_timer()
                self._forget_request(waiting)

    def drop_all(self) -> None:
        for requests in self._waiting.values():
            for waiting in requests:
                waiting.stop_timer()
        self._waiting.clear()

    def _forget_request(self, waiting: WaitingRequest) -> None:
        requests = self._waiting.get(waiting.request.partition_id, [])
        if waiting in requests:
            requests.remove(waiting)
        if not requests:
            self._waiting.pop(waiting.request.partition_id, None)

    def __repr__(self) -> str:
        return f"<PartitionRequests: {sum(map(len, self._waiting.values()))} waiting>"
