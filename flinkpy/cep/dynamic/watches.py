"""The watches of all patterns: which events which of them want.

Each set of conditions that a pattern waits for (``wanted_events``) is a watch with a bit of its
own. For an event ``met`` gives the bits of those watches among the wanted ones that it meets: first
by the filter, which looks fields up; then the conditions that only asking answers are asked, each
once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from flinkpy.cep.dynamic.event_filter import EventFilter
from flinkpy.cep.dynamic.shared_conditions import Comparison, SharedConditions
from flinkpy.cep.dynamic.wanted_events import Test, Wanted, WantedSets
from flinkpy.cep.event_conditions import ConditionContext, Holds

Owner = TypeVar("Owner")


@dataclass
class _Asked:
    """A test, and the watches that have it."""

    holds: Holds
    bits: int = 0


@dataclass
class Watches(Generic[Owner]):
    """``owners`` has who waits, by the place of the bit."""

    conditions: SharedConditions
    owners: dict[int, Owner] = field(default_factory=dict)
    _sets: dict[int, Wanted] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    _asked: dict[Test, _Asked] = field(default_factory=dict)
    _filter: EventFilter | None = None
    _asking: int = 0  # the watches for which a test is being asked

    def add(self, sets: WantedSets, owner: Owner) -> int:
        """The bits of new watches for the owner."""
        bits = 0
        for each in sets:
            place = self._free.pop() if self._free else len(self._sets)
            self.owners[place], self._sets[place] = owner, each
            for test in each:
                if isinstance(test, Test):
                    asked = self._asked.setdefault(test, _Asked(test.condition.bind()))
                    asked.bits |= 1 << place
            bits |= 1 << place
        self._filter = None
        return bits

    def remove(self, bits: int) -> None:
        """Forgets these watches."""
        for place in places(bits):
            for test in self._sets.pop(place):
                if isinstance(test, Test):
                    self._asked[test].bits &= ~(1 << place)
                    if not self._asked[test].bits:
                        del self._asked[test]
            del self.owners[place]
            self._free.append(place)
        self._filter = None

    def filter(self) -> EventFilter:
        """The filter for the watches as they are now."""
        if self._filter is None:
            self._filter = EventFilter(
                {
                    1 << place: [each for each in wanted if isinstance(each, Comparison)]
                    for place, wanted in self._sets.items()
                }
            )
        return self._filter

    def ask(self, met: int, context: ConditionContext) -> int:
        """What is left of these watches once their tests were asked."""
        for asked in self._asked.values():
            self._asking = met & asked.bits
            if self._asking and not asked.holds(self.conditions.event, context):
                met &= ~asked.bits
                if not met:
                    break
        self._asking = 0
        return met

    def asked_for(self) -> Owner | None:
        """Who has the test that is being asked; one of several."""
        return self.owners[next(places(self._asking))] if self._asking else None


def places(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
