"""What happens as a worker's memory fills up: a table of levels, and the decisions that follow from
what is measured. Time is an argument, and nothing is done here."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class MemoryLevel(Enum):
    """How full a worker's memory is."""

    FREE = "there is room"
    SHRINKING = "caches shrink, and what can spill does"
    RESTING = "sources rest, so that what is under way drains"
    FAILING = "the task that grew most fails"


class LevelRule(NamedTuple):
    """From ``begins`` on, as a share of the limit, and until it is less than ``ends``."""

    level: MemoryLevel
    begins: float
    ends: float


LEVELS = (
    LevelRule(MemoryLevel.SHRINKING, 0.80, 0.80),
    LevelRule(MemoryLevel.RESTING, 0.90, 0.85),
    LevelRule(MemoryLevel.FAILING, 0.97, 0.97),
)


class MemoryAction(Enum):
    """What is to be done."""

    SHRINK = "give unused memory back, shrink caches, have operators spill"
    COLLECT_GARBAGE = "the same with a whole garbage collection, which may take long"
    GROW = "let caches have their size again"
    REST_SOURCES = "sources stop reading, as by back-pressure"
    WAKE_SOURCES = "sources read again"
    FAIL_LARGEST = "fail the task that grew most"


SHRINK_EACH_S = 5.0
COLLECT_EACH_S = 60.0
FAIL_EACH_S = 5.0
"""A task that failed needs that long to give its memory back, before another one has to."""


class MemoryPressure:
    """Decides for a process of ``limit`` bytes. Sources that have rested for ``rest_s`` wait for
    memory that does not come back: then a task fails as well."""

    def __init__(self, limit: int, rest_s: float) -> None:
        self._limit = limit
        self._rest_s = rest_s
        self.level = MemoryLevel.FREE
        self._active: set[MemoryLevel] = set()
        self._resting_since = 0.0
        self._last: dict[MemoryAction, float] = {}

    def measured(self, now_s: float, used: int) -> list[MemoryAction]:
        """The process has so many bytes now."""
        share = used / self._limit
        before, self._active = self._active, self._reached(share)
        self.level = max(self._active, key=list(MemoryLevel).index, default=MemoryLevel.FREE)
        return [
            *self._shrinking(now_s, before),
            *self._resting(now_s, before),
            *self._failing(now_s),
        ]

    def _reached(self, share: float) -> set[MemoryLevel]:
        return {
            rule.level
            for rule in LEVELS
            if share >= (rule.ends if rule.level in self._active else rule.begins)
        }

    def _shrinking(self, now_s: float, before: set[MemoryLevel]) -> list[MemoryAction]:
        if MemoryLevel.SHRINKING not in self._active:
            return [MemoryAction.GROW] if MemoryLevel.SHRINKING in before else []
        if self._is_due(MemoryAction.COLLECT_GARBAGE, now_s, COLLECT_EACH_S):
            self._last[MemoryAction.SHRINK] = now_s
            return [MemoryAction.COLLECT_GARBAGE]
        if self._is_due(MemoryAction.SHRINK, now_s, SHRINK_EACH_S):
            return [MemoryAction.SHRINK]
        return []

    def _resting(self, now_s: float, before: set[MemoryLevel]) -> list[MemoryAction]:
        rests, rested = MemoryLevel.RESTING in self._active, MemoryLevel.RESTING in before
        if rests == rested:
            return []
        self._resting_since = now_s
        return [MemoryAction.REST_SOURCES if rests else MemoryAction.WAKE_SOURCES]

    def _failing(self, now_s: float) -> list[MemoryAction]:
        waits_in_vain = (
            MemoryLevel.RESTING in self._active and now_s - self._resting_since >= self._rest_s
        )
        if MemoryLevel.FAILING not in self._active and not waits_in_vain:
            return []
        if not self._is_due(MemoryAction.FAIL_LARGEST, now_s, FAIL_EACH_S):
            return []
        self._resting_since = now_s
        return [MemoryAction.FAIL_LARGEST]

    def _is_due(self, action: MemoryAction, now_s: float, each_s: float) -> bool:
        last = self._last.get(action)
        if last is not None and now_s - last < each_s:
            return False
        self._last[action] = now_s
        return True
