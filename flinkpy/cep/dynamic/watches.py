"""The watches of all patterns: which events which of them want.

Each set of conditions that a pattern waits for (``wanted_events``) is a watch with a bit of its
own. Which watches an event meets is found by the filter, which looks fields up; then the conditions
that only asking answers are asked, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from flinkpy.cep.dynamic.event_filter import EventFilter
from flinkpy.cep.dynamic.shared_conditions import Comparison, SharedConditions
from flinkpy.cep.dynamic.wanted_events import Test, Wanted, WantedSets

Owner = TypeVar("Owner")
_FEW = 8  # bits, up to which taking one after the other is faster than writing them as digits


@dataclass
class _Asked:
    """A test, and the watches that have it."""

    holds: Callable[[Any], Any]
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
                    asked = self._asked.get(test)
                    if asked is None:
                        holds = self.conditions.function_of(test.condition)
                        asked = self._asked[test] = _Asked(holds)
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
        self._filter.settle()
        return self._filter

    @property
    def has_tests(self) -> bool:
        """Whether any watch has a condition that only asking answers."""
        return bool(self._asked)

    def ask(self, met: int, event: Any) -> int:
        """What is left of these watches once their tests were asked about the event that the
        conditions look at."""
        for asked in self._asked.values():
            bits = met & asked.bits
            if bits:
                self._asking = bits
                if not asked.holds(event):
                    met ^= bits
                    if not met:
                        break
        self._asking = 0
        return met

    def asked_for(self) -> Owner | None:
        """Who has the test that is being asked; one of several."""
        return self.owners[next(places(self._asking))] if self._asking else None


def places(bits: int) -> Iterator[int]:
    """The places of the bits that are set."""
    if bits.bit_count() > _FEW:
        digits = f"{bits:b}"[::-1]
        place = digits.find("1")
        while place >= 0:
            yield place
            place = digits.find("1", place + 1)
        return
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
