"""Which of thousands of watches an event may meet, at the cost of a few look-ups.

A watch is a set of comparisons of fields with values. Each has a bit. A field's value is looked up
among all values that it is compared with, which gives the bits of all watches whose comparisons of
this field hold, and of those that do not look at the field; what all fields agree on is left. So
the cost grows with the number of fields, and hardly with that of watches.

The filter may let too much pass and never too little: a value that is no plain number or text is
not looked up."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.cep.dynamic.shared_conditions import Comparison, field_reader, is_plain_number

ALL = -1  # all bits


class _Ranges:
    """The comparisons of one field with one operator, in the order of their values."""

    def __init__(self, function: str, bits_of_values: dict[Any, int], others: int) -> None:
        self._values = sorted(bits_of_values)
        upward = function.startswith(">")
        # a value satisfies "> x" of all smaller x, and ">= x" also of an equal one
        self._place = bisect_left if function in (">", "<=") else bisect_right
        bits = others
        met = [bits]
        for value in self._values if upward else reversed(self._values):
            bits |= bits_of_values[value]
            met.append(bits)
        self._met = met if upward else met[::-1]

    def met(self, value: Any) -> int:
        """The watches that a value meets, and those that do not compare so."""
        return self._met[self._place(self._values, value)]


class FieldFilter:
    """All comparisons of one field."""

    def __init__(self, column: str, every: int) -> None:
        self.column = column
        self._every = every
        self._bits: dict[str, dict[Any, int]] = {}
        self._readers: dict[type, Callable[[Any], Any]] = {}
        self._ranges: list[_Ranges] = []
        self._equal: dict[Any, int] = {}
        self._unequal = ALL
        self._null = every
        self.decided = 0  # how many events meet nothing because of this field

    def add(self, bit: int, comparison: Comparison) -> None:
        """A comparison of the watch with this bit."""
        of_function = self._bits.setdefault(comparison.function, {})
        for value in comparison.values:
            of_function[value] = of_function.get(value, 0) | bit
        self._null &= ~bit

    def close(self) -> None:
        """All comparisons are there."""
        for function, bits_of_values in self._bits.items():
            used = 0
            for bits in bits_of_values.values():
                used |= bits
            others = self._every & ~used
            if function == "==":
                self._equal = {value: bits | others for value, bits in bits_of_values.items()}
                self._unequal = others
            else:
                self._ranges.append(_Ranges(function, bits_of_values, others))

    def met(self, event: Any) -> int:
        """The watches that the event may meet."""
        kind = type(event)
        read = self._readers.get(kind)
        if read is None:
            read = self._readers[kind] = field_reader(kind, self.column)
        value = read(event)
        kind = type(value)
        if kind is float or kind is int:
            if not is_plain_number(value):
                return ALL
            bits = self._equal.get(value, self._unequal)
            for each in self._ranges:
                bits &= each.met(value)
            return bits
        if value is None:
            return self._null
        if kind is str or kind is bool:
            return ALL if self._ranges else self._equal.get(value, self._unequal)
        return ALL


class EventFilter:
    """The watches by their bits, each with its comparisons. A field is looked up once for an event.

    >>> watches = {1: [Comparison("price", ">", (5,))], 2: [Comparison("kind", "==", ("bid",))]}
    >>> event_filter = EventFilter(watches)
    >>> events = {"price": 7, "kind": "bid"}, {"price": 5}
    >>> [event_filter.met(event, 3) for event in events], event_filter.met(events[0], 1)
    ([3, 0], 1)
    """

    def __init__(self, watches: dict[int, Iterable[Comparison]]) -> None:
        every = 0
        for bit in watches:
            every |= bit
        fields: dict[str, FieldFilter] = {}
        for bit, comparisons in watches.items():
            for comparison in _one_of_each(comparisons):
                of_field = fields.get(comparison.column)
                if of_field is None:
                    of_field = fields[comparison.column] = FieldFilter(comparison.column, every)
                of_field.add(bit, comparison)
        for each in fields.values():
            each.close()
        self._fields = list(fields.values())
        self.is_sure = True  # whether the comparisons of the watches that were met last hold

    def met(self, event: Any, wanted: int) -> int:
        """The bits of those of the wanted watches that the event may meet."""
        self.is_sure = True
        for each in self._fields:
            of_field = each.met(event)
            if of_field < 0:
                self.is_sure = False
            wanted &= of_field
            if not wanted:
                each.decided += 1
                return 0
        return wanted

    def settle(self) -> None:
        """Looks first at the fields that decide for most events."""
        if len(self._fields) > 1:
            self._fields.sort(key=lambda field: -field.decided)


def _one_of_each(comparisons: Iterable[Comparison]) -> Iterable[Comparison]:
    """Of several comparisons of a field with the same operator the first is enough: the filter may
    let too much pass."""
    found: dict[tuple[str, str], Comparison] = {}
    for each in comparisons:
        found.setdefault((each.column, each.function), each)
    return found.values()
