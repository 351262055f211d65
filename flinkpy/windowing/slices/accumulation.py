"""What is done to the accumulators of slices: adding the records of one slice, and putting slices
together.

Each is a loop generated with the update in its middle, specialised for what the first record is, as
the running aggregates' loops are (``flinkpy.operators.rows.keyed``). An accumulator is a value like
the records: two of them are put together by the same update."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from operator import length_hint
from typing import Any

from flinkpy.aggregates.of_records import OF_RECORDS, FieldAggregate, Shape, shape_of
from flinkpy.core.codegen.generated import compile_function, failure_in, forget_source
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import method_of
from flinkpy.operators.rows.keyed_loops import CALLED, assigned
from flinkpy.operators.user_errors import user_code_error

States = dict[Any, Any]  # of one slice: key -> accumulator

_BY_KEY = """\
def slice_loop(values, states, select, entered, update):
    for record in values:
        key = select(record)
        if key in states:
            current = states[key]
            {update}
            states[key] = current
        else:
            key = canonical(key)
            states[key] = update(states[key], record) if key in states else entered(record)
"""

_BY_PAIR = """\
def slice_loop(pairs, states, entered, update):
    for key, record in pairs:
        if key in states:
            current = states[key]
            {update}
            states[key] = current
        else:
            states[key] = entered(record)
"""

_OF_ALL = """\
def slice_loop(values, current, update):
    for record in values:
            {update}
    return current
"""

_TOGETHER = """\
def slice_loop(states, others, update):
    for key, record in others.items():
        if key in states:
            current = states[key]
            {update}
            states[key] = current
        else:
            states[key] = record
"""


def check_aggregate(kind: str, position: int | str | None) -> None:
    """ProgramError for what is no aggregate of windows, or no position."""
    if kind not in (*OF_RECORDS, "count", "reduce"):
        raise ProgramError(
            f"{kind!r} is no aggregate of windows; choose one of "
            f"{', '.join((*OF_RECORDS, 'count', 'reduce'))}"
        )
    if kind in OF_RECORDS:
        FieldAggregate(kind, position)


class Counts(Counter[Any]):
    """A Counter whose ``update`` sets counts, as that of any dict does, for whoever takes it for
    one. ``Counter.update`` counts."""

    def update(self, entries: Any = None, /, **named: Any) -> None:
        dict.update(self, entries or (), **named)


class _OddShape(Exception):
    """A record that the loop at hand is not made for."""


class SliceLoops:
    """The loops of one operator. ``select`` is None where there are no keys: then the only key is
    None."""

    def __init__(
        self,
        kind: str,
        position: int | str | None,
        reduce: object,
        select: Callable[[Any], Any] | None,
        context: OperatorContext,
    ) -> None:
        self.kind = kind
        self._select = select
        self._context = context
        self._shape: Shape | None = None  # of the records the loops are made for
        self._aggregate = FieldAggregate(kind, position) if kind in OF_RECORDS else None
        self._undecided = self._aggregate is not None
        self._update: Any = (
            method_of(reduce, "reduce")
            if kind == "reduce"
            else None
            if self._aggregate is None
            else self._aggregate.update
        )
        self._compiled: list[Any] = []
        self._compile("current + record" if kind == "count" else CALLED)

    def new_states(self) -> States:
        """For a slice's first record."""
        return Counts() if self.kind == "count" else {}

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
            self.generalise()
            self.add(values[len(values) - length_hint(upcoming) - 1 :], states)
        except BaseException as error:
            raise user_code_error(
                error, self._context, values[len(values) - length_hint(upcoming) - 1]
            ) from error

    def add_pairs(self, pairs: list[tuple[Any, Any]], states: States) -> None:
        """Adds keys with accumulators of the same kind, made elsewhere."""
        if self._undecided:
            self._specialise(pairs[0][1])
        upcoming = iter(pairs)
        try:
            self._by_pair(upcoming, states, self._entered, self._update)
        except _OddShape:
            self.generalise()
            self.add_pairs(pairs[len(pairs) - length_hint(upcoming) - 1 :], states)
        except BaseException as error:
            raise user_code_error(
                error, self._context, pairs[len(pairs) - length_hint(upcoming) - 1][1]
            ) from error

    def together(self, slices: list[States]) -> States:
        """The accumulators of several slices, put together in this order. The first one is
        changed."""
        merged = slices[0]
        for others in slices[1:]:
            try:
                self._merge(merged, others, self._update)
            except BaseException as error:
                failure = failure_in(self._merge, error.__traceback__)
                raise user_code_error(
                    error, self._context, failure.variables.get("record") if failure else None
                ) from error
        return merged

    def restored(self, accumulators: list[Any]) -> None:
        """There are these from before: the loops must be made for them too."""
        if self._undecided and accumulators:
            if len(set(map(shape_of, accumulators))) == 1:
                self._specialise(accumulators[0])
            else:
                self.generalise()

    def forget(self) -> None:
        """Takes the sources out of linecache."""
        for loop in self._compiled:
            forget_source(loop)
        self._compiled = []

    def _compile(self, update: str) -> None:
        self.forget()
        statement = assigned("current", update, self._aggregate is not None, 12)
        names = {"canonical": canonical_key}
        sources = (_BY_KEY, _BY_PAIR, _OF_ALL, _TOGETHER)
        self._compiled = [
            compile_function("slice_loop", source.format(update=statement), names)
            for source in sources
        ]
        self._by_key, self._by_pair, self._of_all, self._merge = self._compiled

    def _specialise(self, sample: object) -> None:
        """From now on the loops are for records of this shape."""
        self._undecided = False
        assert self._aggregate is not None
        expression = self._aggregate.update_expression(sample)
        if expression is not None:
            self._shape = shape_of(sample)
            self._compile(expression)

    def generalise(self) -> None:
        """From now on the loops are for all records."""
        self._undecided, self._shape = False, None
        self._compile(CALLED)

    def _entered(self, record: object) -> Any:
        if self._shape is not None and shape_of(record) != self._shape:
            raise _OddShape
        return record

    def _add_to_all(self, upcoming: Iterator[Any], states: States) -> None:
        current = states[None] if None in states else self._entered(next(upcoming))
        states[None] = current  # where a record is refused, those before it count
        states[None] = self._of_all(upcoming, current, self._update)

    def _count(self, upcoming: Iterator[Any], states: States) -> None:
        if self._select is None:
            states[None] = states.get(None, 0) + length_hint(upcoming)
            return
        select = self._select
        keys = [select(record) for record in upcoming]
        if type(states) is Counts:
            _count_keys(keys, states)
            return
        added = Counts()  # the slice is frozen
        _count_keys(keys, added)
        for key, count in added.items():
            states[key] = states.get(key, 0) + count


def _count_keys(keys: list[Any], states: Counts) -> None:
    known = len(states)
    Counter.update(states, keys)  # in C
    new = islice(reversed(states), len(states) - known)
    odd = {key for key in new if canonical_key(key) is not key}
    # keys that are not as a dict finds them, or only by chance: those of the hour that comes twice
    # are equal for a dict
    if odd:
        for key in odd:
            del states[key]
        for key in keys:
            if key in odd:
                states[canonical_key(key)] += 1
