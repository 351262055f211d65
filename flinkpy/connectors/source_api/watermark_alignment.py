"""Watermark alignment: the readers of a group do not run ahead of the slowest by more than the
allowed drift.

The JobMaster allows each reader to go on up to some watermark. Beyond it, the reader stops reading
and asks for more. The JobMaster knows what each reader of the group reported last, and answers as
soon as the slowest has come near enough. So the number of such messages depends on how many drifts
of event time pass, not on the number of readers and seconds. In between, a reader reports its event
time only at the update interval, because others may be waiting for it. Readers read whole batches,
so one may be ahead by one batch more.

As in Flink, a reader that has reported nothing yet holds nobody back; neither does one that is idle
or at its end. A group spans all sources of the job that name it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from flinkpy.common.time import to_milliseconds
from flinkpy.common.watermark_strategy import WatermarkAlignment
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True)
class WatermarkReported:
    """A reader's event time (MAX_TIMESTAMP: it holds nobody back), and whether it waits for an
    answer."""

    group: str
    watermark: int
    max_drift_ms: int
    waiting: bool


@dataclass(frozen=True)
class WatermarkAllowed:
    """The watermark up to which a reader may go."""

    watermark: int


class ReaderAlignment:
    """The reader's side. ``say`` sends an event to the coordinator."""

    def __init__(
        self, alignment: WatermarkAlignment, say: Callable[[WatermarkReported], None]
    ) -> None:
        self._group = alignment.group
        self._drift_ms = to_milliseconds(alignment.max_drift)
        self._say = say
        self._allowed: int | None = None
        self._said: int | None = None
        self.waiting = False

    def must_wait(self, watermark: int) -> bool:
        """Whether the reader is too far ahead; called before each read. If it is, asks for more."""
        if self.waiting:
            return True
        if watermark == MIN_TIMESTAMP:
            return False
        if self._allowed is None:  # the first call with an event time
            self._allowed = _sum(watermark, self._drift_ms)
            self._report(watermark)
        if watermark <= self._allowed:
            return False
        self.waiting = True
        self._report(watermark)
        return True

    def allowed(self, event: WatermarkAllowed) -> None:
        self._allowed, self.waiting = event.watermark, False

    def tick(self, watermark: int) -> None:
        """Called every update interval: reports the reader's event time if it has changed."""
        if watermark not in (self._said, MIN_TIMESTAMP) and not self.waiting:
            self._report(watermark)

    def _report(self, watermark: int) -> None:
        self._said = watermark
        self._say(WatermarkReported(self._group, watermark, self._drift_ms, self.waiting))

    def __repr__(self) -> str:
        return (
            f"<ReaderAlignment in {self._group!r}, allowed "
            f"{self._allowed}{', waiting' if self.waiting else ''}>"
        )


@dataclass
class _Member:
    watermark: int
    max_drift_ms: int
    answer: Callable[[WatermarkAllowed], None] | None


class AlignmentGroups:
    """The JobMaster's side, for all groups of a job."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Hashable, _Member]] = {}

    def report(
        self, member: Hashable, event: WatermarkReported, answer: Callable[[WatermarkAllowed], None]
    ) -> None:
        """Takes a reader's report. If the reader waits, ``answer`` is called, now or later."""
        self._groups.setdefault(event.group, {})[member] = _Member(
            event.watermark, event.max_drift_ms, answer if event.waiting else None
        )
        self._release(event.group)

    def forget(self, member: Hashable) -> None:
        """Forgets a reader whose attempt has ended: nobody waits for it any more."""
        for name, group in self._groups.items():
            if group.pop(member, None) is not None:
                self._release(name)

    def slowest(self, group: str) -> int | None:
        """The least event time that a reader of the group reported; None if none has."""
        return min(
            (member.watermark for member in self._groups.get(group, {}).values()), default=None
        )

    def _release(self, group: str) -> None:
        least = self.slowest(group)
        for member in list(self._groups[group].values()):
            if member.answer is None or least is None:
                continue
            allowed = _sum(least, member.max_drift_ms)
            if member.watermark <= allowed:
                answer, member.answer = member.answer, None
                answer(WatermarkAllowed(allowed))

    def __repr__(self) -> str:
        waiting = sum(
            member.answer is not None
            for group in self._groups.values()
            for member in group.values()
        )
        return (
            f"<AlignmentGroups {', '.join(map(repr, self._groups)) or 'none'}: {waiting} "
            "readers wait>"
        )


def _sum(watermark: int, drift_ms: int) -> int:
    return min(MAX_TIMESTAMP, watermark + drift_ms)
