"""What is in flight at one end of a task's channels, gathered for one checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from flinkpy.core.reactor import Reactor, ReactorTimer
from flinkpy.graph.checkpoints import ChannelKey
from flinkpy.network.channel_state import ElementLog


class RecordedChannel(NamedTuple):
    """The elements of one channel that belong to a checkpoint."""

    channel: ChannelKey
    is_input: bool
    log: ElementLog


@dataclass(frozen=True)
class TaskTiming:
    """What those who wait for barriers need of the task's thread. ``soon`` and ``later`` run an
    action in a step of the task, unless it has ended."""

    now_ms: Callable[[], int]
    soon: Callable[[Callable[[], None]], None]
    later: Callable[[float, Callable[[], None]], ReactorTimer]

    @staticmethod
    def of(reactor: Reactor, run_in_task: Callable[[Callable[[], None]], None]) -> TaskTiming:
        def later(delay_s: float, action: Callable[[], None]) -> ReactorTimer:
            return reactor.call_later(delay_s, lambda: run_in_task(action))

        return TaskTiming(reactor.clock.time_ms, run_in_task, later)


class ChannelRecording:
    """The logs of the channels. ``finish`` is called once, when nothing is added any more;
    ``abandon`` when nobody needs it, and then ``on_abandoned`` is."""

    def __init__(
        self, checkpoint_id: int, is_input: bool, on_abandoned: Callable[[], None] = lambda: None
    ) -> None:
        self.checkpoint_id = checkpoint_id
        self._is_input = is_input
        self._on_abandoned = on_abandoned
        self._logs: dict[ChannelKey, ElementLog] = {}
        self.is_complete = False
        self._then: Callable[[], None] | None = None

    def log_of(self, channel: ChannelKey) -> ElementLog:
        return self._logs.setdefault(channel, ElementLog())

    def finish(self) -> None:
        """All that belongs to the checkpoint was added."""
        self.is_complete = True
        then, self._then = self._then, None
        if then is not None:
            then()

    def when_complete(self, then: Callable[[], None]) -> None:
        """Calls ``then`` once it is complete, which may be now."""
        if self.is_complete:
            then()
        else:
            self._then = then

    def abandon(self) -> None:
        """The checkpoint is in vain."""
        self._then = None
        self._logs.clear()
        self._on_abandoned()

    def channels(self) -> list[RecordedChannel]:
        """Those with something in flight."""
        return [
            RecordedChannel(key, self._is_input, log)
            for key, log in sorted(self._logs.items())
            if not log.is_empty
        ]

    def __repr__(self) -> str:
        return (
            f"<ChannelRecording of checkpoint {self.checkpoint_id}: "
            f"{self._logs}{', complete' if self.is_complete else ''}>"
        )
