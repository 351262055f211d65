"""What is done to the accumulators of slices: adding the records of one slice, and putting slices together.

Each is a loop generated with the update in its middle, specialised for what the first record is, as the running aggregates' loops are
(``flinkpy.operators.keyed``). An accumulator is a value like the records: two of them are put together by the same update.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from operator import length_hint
from typing import Any

from flinkpy.core.generated import compile_function, failure_in, forget_source
from flinkpy.operators.base import OperatorContext
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.fields import field_of, with_field
from flinkpy.operators.functions import method_of
from flinkpy.operators.keyed import AGGREGATES, update_expression

KINDS = (*AGGREGATES, "count", "reduce")

States = dict[Any, Any]  # of one slice: key -> accumulator

_BY_KEY = """\
def slice_loop(values, states, select, entered, update):
    for record in values:
        key = select(record)
        if key in states:
            current = states[key]
            states[key] = {update}
        else:
            states[key] = entered(record)
"""

_OF_ALL = """\
def slice_loop(values, current, update):
    for record in values:
        current = {update}
    return current
"""

_TOGETHER = """\
def slice_loop(states, others, update):
    for key, record in others.items():
        if key in states:
            current = states[key]
            states[key] = {update}
        else:
            states[key] = record
"""


class _OddShape(Exception):
    """A record that the loop at hand is not made for."""


class SliceLoops:
    """The loops of one operator. ``select`` is None where there are no keys: then the only key is None."""

    def __init__(
        self, kind: str, position: int | str | None, reduce: Any, select: Callable[[Any], Any] | None, context: OperatorContext,
    ) -> None:
        self.kind, self._position, self._select, self._context = kind, position, select, context
        self._shape: tuple[type, int] | None = None  # of the records the loops are made for
        self._undecided = kind in AGGREGATES
        self._update: Callable[[Any, Any], Any] = method_of(reduce, "reduce") if kind == "reduce" else self._general_update
        self._compiled: list[Any] = []
        self._compile("current + record" if kind == "count" else "update(current, record)")

    def new_states(self) -> States:
        """For a slice's first record."""
        return Counter() if self.kind == "count" else {}

    def add(self, values: list[Any], states: States) -> None:
        """Adds records, in their order, to the accumulators of their slice."""
        if self._undecided:
            self._specialise(values[0])
        upcoming = iter(values)
        try:
            if self.kind == "count":
                self._count(upcoming, states)
            elif self._select is None:
                self._add_to_all(upcoming, states)
            else:
                self._by_key(upcoming, states, self._select, self._entered, self._update)
        except _OddShape:  # the iterator knows how far it got
            self._generalise()
            self.add(values[len(values) - length_hint(upcoming) - 1 :], states)
        except Exception as error:
            raise user_code_error(error, self._context, values[len(values) - length_hint(upcoming) - 1]) from error

    def together(self, slices: list[States]) -> States:
        """The accumulators of several slices, put together in this order. The first one is changed."""
        merged = slices[0]
        for others in slices[1:]:
            try:
                self._merge(merged, others, self._update)
            except Exception as error:
                failure = failure_in(self._merge, error.__traceback__)
                raise user_code_error(error, self._context, failure.variables.get("record") if failure else None) from error
        return merged

    def restored(self, accumulators: list[Any]) -> None:
        """There are these from before: the loops must be made for them too."""
        if self._undecided and accumulators:
            if len(set(map(_shape, accumulators))) == 1:
                self._specialise(accumulators[0])
            else:
                self._generalise()

    def forget(self) -> None:
        """Takes the sources out of linecache."""
        for loop in self._compiled:
            forget_source(loop)
        self._compiled = []

    def _compile(self, update: str) -> None:
        self.forget()
        self._compiled = [compile_function("slice_loop", source.format(update=update), {}) for source in (_BY_KEY, _OF_ALL, _TOGETHER)]
        self._by_key, self._of_all, self._merge = self._compiled

    def _specialise(self, sample: Any) -> None:
        """From now on the loops are for records of this shape."""
        self._undecided = False
        if self._position == 0 and not hasattr(type(sample), "__getitem__"):
            self._position = None  # PyFlink's default position: of plain numbers it is the number itself
        expression = update_expression(self.kind, self._position, sample)
        if expression is not None:
            self._shape = _shape(sample)
            self._compile(expression)

    def _generalise(self) -> None:
        """From now on the loops are for all records."""
        self._undecided, self._shape = False, None
        self._compile("update(current, record)")

    def _entered(self, record: Any) -> Any:
        if self._shape is not None and _shape(record) != self._shape:
            raise _OddShape
        return record

    def _add_to_all(self, upcoming: Iterator[Any], states: States) -> None:
        current = states[None] if None in states else self._entered(next(upcoming))
        states[None] = current  # where a record is refused, those before it count
        states[None] = self._of_all(upcoming, current, self._update)

    def _count(self, upcoming: Iterator[Any], states: States) -> None:
        if self._select is None:
            states[None] += length_hint(upcoming)
        else:
            states.update(map(self._select, upcoming))  # a Counter's: it counts in C

    def _general_update(self, current: Any, record: Any) -> Any:
        old, new = field_of(current, self._position), field_of(record, self._position)
        if self.kind == "sum":
            return with_field(current, self._position, old + new)
        better = new < old if self.kind.startswith("min") else new > old
        if not better:
            return current
        return record if self.kind.endswith("_by") else with_field(current, self._position, new)


def _shape(record: Any) -> tuple[type, int]:
    return type(record), len(record) if type(record) is tuple else 0
