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
from operator import and_
from typing import Any

from flinkpy.cep.dynamic.shared_conditions import LARGEST, Comparison, field_reader, is_plain_number

ALL = -1  # all bits
_TEXT, _INTEGERS = {str}, {int}


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

    def met_by(self, values: list[Any]) -> list[int]:
        """The same for each of many values."""
        met, place, compared = self._met, self._place, self._values
        return [met[place(compared, value)] for value in values]


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
        """The watches that the event may meet; below zero if its value is not looked up."""
        return self._met_by_value(self._reader(type(event))(event))

    def met_by(self, events: list[Any]) -> list[int]:
        """The same for each of many events."""
        kinds = set(map(type, events))
        if len(kinds) > 1:
            return list(map(self.met, events))
        values = list(map(self._reader(kinds.pop()), events))
        kinds = set(map(type, values))
        if kinds == _TEXT and not self._ranges:
            equal, unequal = self._equal, self._unequal
            return [equal.get(value, unequal) for value in values]
        if kinds == _INTEGERS and not self._equal and max(map(abs, values)) <= LARGEST:
            first, *others = self._ranges
            found = first.met_by(values)
            for each in others:
                found = list(map(and_, found, each.met_by(values)))
            return found
        return list(map(self._met_by_value, values))

    def _reader(self, kind: type) -> Callable[[Any], Any]:
        read = self._readers.get(kind)
        if read is None:
            read = self._readers[kind] = field_reader(kind, self.column)
        return read

    def _met_by_value(self, value: Any) -> int:
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
    >>> event_filter.met_by([{"price": 7, "kind": "bid"}, {"price": 5}, {"price": 6}])
    [3, 0, 1]
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

    def met(self, event: Any) -> int:
        """The bits of the watches that the event may meet."""
        bits = ALL
        for each in self._fields:
            bits &= each.met(event)
        return bits

    def met_by(self, events: list[Any]) -> list[int]:
        """The same for each of many events."""
        if not self._fields or not events:
            return [ALL] * len(events)
        first, *others = self._fields
        found = first.met_by(events)
        first.decided += found.count(0)
        for each in others:
            left = found.count(0)
            met = each.met
            found = [bits and bits & met(event) for bits, event in zip(found, events)]
            each.decided += found.count(0) - left
        return found

    def is_sure(self, event: Any) -> bool:
        """Whether the comparisons of all watches hold that the event may meet."""
        return all(each.met(event) >= 0 for each in self._fields)

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
