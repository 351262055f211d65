"""Watermark alignment: readers of one group do not run ahead of the slowest by more than the allowed drift.

A reader may go on up to a watermark it was allowed. When it gets beyond, it stops reading and asks for more; the JobMaster, which knows what every
reader of the group said last, answers as soon as the slowest has come near enough. So messages are as many as event time has drifts, and not as
many as there are readers and seconds: in between a reader says where it is only every update interval, as others may wait for it. Whole batches
are read, so a reader may be ahead by its last batch more.

As in Flink, who has said nothing yet holds nobody back, and neither does a reader that is idle or at its end. A group spans all sources of the job
that name it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from flinkpy.common.time import to_milliseconds
from flinkpy.common.watermark_strategy import WatermarkAlignment
from flinkpy.core.elements import MAX_TIMESTAMP, MIN_TIMESTAMP


@dataclass(frozen=True)
class WatermarkReported:
    """A reader's event time (MAX_TIMESTAMP: holds nobody back), and whether it waits for an answer."""

    group: str
    watermark: int
    max_drift_ms: int
    waiting: bool


@dataclass(frozen=True)
class WatermarkAllowed:
    """How far a reader may go."""

    watermark: int


class ReaderAlignment:
    """One reader's side. ``say`` sends an event to the coordinator."""

    def __init__(self, alignment: WatermarkAlignment, say: Callable[[WatermarkReported], None]) -> None:
        self._group, self._drift_ms, self._say = alignment.group, to_milliseconds(alignment.max_drift), say
        self._allowed: int | None = None
        self._said: int | None = None
        self.waiting = False

    def must_wait(self, watermark: int) -> bool:
        """Before each read: whether the reader is too far ahead. Asks for more when it finds out."""
        if self.waiting:
            return True
        if watermark == MIN_TIMESTAMP:
            return False
        if self._allowed is None:  # the first one
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
        """Every update interval: says where the reader is, if that has changed."""
        if watermark not in (self._said, MIN_TIMESTAMP) and not self.waiting:
            self._report(watermark)

    def _report(self, watermark: int) -> None:
        self._said = watermark
        self._say(WatermarkReported(self._group, watermark, self._drift_ms, self.waiting))

    def __repr__(self) -> str:
        return f"<ReaderAlignment in {self._group!r}, allowed {self._allowed}{', waiting' if self.waiting else ''}>"


@dataclass
class _Member:
    watermark: int
    max_drift_ms: int
    answer: Callable[[WatermarkAllowed], None] | None


class AlignmentGroups:
    """The JobMaster's side, for all groups of a job."""

    def __init__(self) -> None:
        self._groups: dict[str, dict[Hashable, _Member]] = {}

    def report(self, member: Hashable, event: WatermarkReported, answer: Callable[[WatermarkAllowed], None]) -> None:
        """What a reader said; ``answer`` is called, now or later, if it waits for one."""
        self._groups.setdefault(event.group, {})[member] = _Member(event.watermark, event.max_drift_ms, answer if event.waiting else None)
        self._release(event.group)

    def forget(self, member: Hashable) -> None:
        """Its attempt is over: nobody waits for it, and it for nobody."""
        for name, group in self._groups.items():
            if group.pop(member, None) is not None:
                self._release(name)

    def slowest(self, group: str) -> int | None:
        """The least event time anybody reported; None: nobody has."""
        return min((member.watermark for member in self._groups.get(group, {}).values()), default=None)

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
        waiting = sum(member.answer is not None for group in self._groups.values() for member in group.values())
        return f"<AlignmentGroups {', '.join(map(repr, self._groups)) or 'none'}: {waiting} readers wait>"


def _sum(watermark: int, drift_ms: int) -> int:
    return min(MAX_TIMESTAMP, watermark + drift_ms)
