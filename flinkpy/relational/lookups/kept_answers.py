"""The answers to lookups that are kept: Flink's partial cache."""

from __future__ import annotations

from collections import OrderedDict
from datetime import timedelta
from typing import TypeAlias

from flinkpy.core.clock import Clock
from flinkpy.relational.lookups.lookup_port import CacheRules

Key: TypeAlias = "tuple[object, ...]"
Rows: TypeAlias = "list[tuple[object, ...]]"


class KeptAnswers:
    """The rows of keys that were asked before; the key that was used longest ago goes first.

    >>> from flinkpy.core.clock import ManualClock
    >>> kept = KeptAnswers(CacheRules(most_keys=1), ManualClock())
    >>> kept.keep((1,), [("a",)]); kept.keep((2,), [])
    >>> kept.get((1,)), kept.get((2,))
    (None, [])
    """

    def __init__(self, rules: CacheRules, clock: Clock) -> None:
        self._rules = rules
        self._clock = clock
        # of each key its rows, when they came, and when they were last used
        self._rows: OrderedDict[Key, tuple[Rows, float, float]] = OrderedDict()

    def clear(self) -> None:
        """All keys are asked again."""
        self._rows = OrderedDict()  # whoever is reading the old one goes on with it

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, key: Key) -> Rows | None:
        """The rows of a key; None if it has to be asked."""
        kept = self._rows
        found = kept.get(key)
        if found is None:
            return None
        rows, written, used = found
        now = self._clock.monotonic()
        if _is_over(self._rules.after_write, written, now) or _is_over(
            self._rules.after_access, used, now
        ):
            del kept[key]
            return None
        kept[key] = rows, written, now
        kept.move_to_end(key)
        return rows

    def keep(self, key: Key, rows: Rows) -> None:
        """Keeps an answer."""
        if not rows and not self._rules.keeps_missing:
            return
        kept, now = self._rows, self._clock.monotonic()
        kept[key] = rows, now, now
        kept.move_to_end(key)
        most = self._rules.most_keys
        if most is not None and len(kept) > most:
            kept.popitem(last=False)


def _is_over(limit: timedelta | None, since: float, now: float) -> bool:
    return limit is not None and now - since >= limit.total_seconds()
