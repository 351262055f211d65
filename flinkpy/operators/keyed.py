"""Keyed operators over rows: reduce, and the running aggregates sum, min, max, min_by, max_by.

Each record gives the running result of its key at once (Flink's streaming semantics); the first one of a key is its own result. All share
one loop (``keyed_loops``), with the update in its middle: a call of the user's function for reduce, an expression for the aggregates. It runs over
the state backend's own dict (``engine_values``), or over what the backend lends for the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.generated import Failure, failure_in, forget_source
from flinkpy.core.inlining import call_or_inline, raised_by
from flinkpy.core.mutability import could_be_mutated, is_safe, private_copy
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import OneInputOperator
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.fields import field_of, is_indexed, with_field
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.keyed_loops import UPDATE_LINE, KeyedLoop, keys_of_all, loop_over_dict, loop_over_lent
from flinkpy.operators.keyed_pairs import PairForm, pair_form, pair_of
from flinkpy.operators.keyed_state import KeyedStateOperator, may_ask_for_state
from flinkpy.operators.stateless import rows
from flinkpy.state.running_values import RUNNING_VALUES, RunningValues

RUNNING_RESULT = "_running result"  # the name of the state
AGGREGATES = ("sum", "min", "max", "min_by", "max_by")


def key_function(key: KeySpec) -> Callable[[Any], Any]:
    """The function from a row to its key; raises ProgramError for a stream keyed by columns only."""
    if key.selector is None:
        raise ProgramError(f"a row operator needs a key selector, but the stream is keyed by columns {key.columns}")
    return method_of(key.selector, "get_key")


class _OddShape(Exception):
    """A record that the loop at hand is not made for; it and those behind it go to the general one."""


class KeyedOperator(KeyedStateOperator, OneInputOperator):
    """What keyed row operators share: the key selector, one value per key, the loops."""

    def __init__(self, key: KeySpec) -> None:
        key_function(key)
        self.key = key

    def initialize_state(self, restored: bytes | None) -> None:
        super().initialize_state(restored)
        self.values = self.backend.engine_values(RUNNING_RESULT)
        self.pairs: PairForm | None = None

    def open(self) -> None:
        self._loops: dict[tuple[str, ...], KeyedLoop] = {}
        open_function(self.key.selector, self.context)
        self._select = key_function(self.key)

    def close(self) -> None:
        for loop in getattr(self, "_loops", {}).values():
            forget_source(loop)
        super().close()
        close_function(self.key.selector)

    def set_key_first(self) -> None:
        """For a function that keeps state of its own: the key is set whenever one is selected."""
        select, current = key_function(self.key), self.backend.current

        def select_and_set(record: Any) -> Any:
            current.key = key = select(record)
            return key

        self._select = select_and_set

    def keep_values_only(self, update: str) -> bool:
        """For an update of pairs of key and value: from now on state is the values alone. False for other updates, and where there is other state."""
        form = pair_form(update, self._selected())
        for key_at, name in enumerate(RUNNING_VALUES):
            if name in self.backend.statistics.keys and (self.values or form is None or key_at != form.key_at):
                self._pairs_again(name, key_at)
        self.pairs = None if self.values else form
        if self.pairs is not None:
            self.values = self.backend.engine_values(RUNNING_VALUES[self.pairs.key_at])
        return self.pairs is not None

    def run_pairs(self, values: list[Any], results: list[Any], checked: Callable[[Any], Any], update: Callable[[Any, Any], Any]) -> None:
        """Runs the loop over values alone; from a key's first record on that is no pair, or ``checked`` refuses, state is whole records again."""
        assert self.pairs is not None
        form, value_at = self.pairs, 1 - self.pairs.key_at

        def entered(record: Any) -> Any:
            if type(record) is not tuple or len(record) != 2:
                raise _OddShape
            return checked(record)[value_at]

        try:
            if not self._run_lent(form, values, results, entered, update):
                self.run_loop(self.loop(form.update, form.emitted), values, results, entered, update)
        except _OddShape:
            self._pairs_again(RUNNING_VALUES[form.key_at], form.key_at)
            self.pairs = None

    def _run_lent(
        self, form: PairForm, values: list[Any], results: list[Any], entered: Callable[[Any], Any], update: Callable[[Any, Any], Any],
    ) -> bool:
        """Where the state is a table: over what it lends. False where it is a dict, or a record has no key: the loop over all finds it."""
        held = self.values
        if not isinstance(held, RunningValues) or held.plain() is not None:
            return False
        try:
            keys = self._made(("keys",), lambda: keys_of_all(self._selected()))(values, self._select)
        except Exception:
            return False
        lent = held.lend(keys)
        if lent is None:
            return False
        loop = self._made(("lent", form.update, form.emitted), lambda: loop_over_lent(form.update, form.emitted, 1 - form.key_at))
        try:
            self.run_loop(loop, zip(keys, lent.places, values), results, entered, update, lent.states)
        finally:
            held.take_back(lent)
        return True

    def _pairs_again(self, name: str, key_at: int) -> None:
        self.values, values = self.backend.engine_values(RUNNING_RESULT), self.backend.engine_values(name)
        for key, value in list(values.items()):
            self.values[key] = pair_of(key, value, key_at)
        values.clear()

    def loop(self, update: str, emitted: str = "value") -> KeyedLoop:
        """The loop over a dict with that update expression."""
        return self._made(("dict", update, emitted), lambda: loop_over_dict(update, emitted, self._selected()))

    def _made(self, name: tuple[str, ...], make: Callable[[], KeyedLoop]) -> KeyedLoop:
        """Compiled once."""
        found = self._loops.get(name)
        if found is None:
            found = self._loops[name] = make()
        return found

    def _selected(self) -> str:
        return call_or_inline(self._select, "select", "record")

    def run_loop(
        self, loop: KeyedLoop, values: Iterable[Any], results: list[Any], entered: Callable[[Any], Any], update: Callable[[Any, Any], Any],
        states: Any = None,
    ) -> None:
        """Runs it over the values, and the states or else all there are; an exception of the user's code says which record it was."""
        if states is None:
            plain = self.values.plain() if isinstance(self.values, RunningValues) else None
            states = self.values if plain is None else plain
        try:
            loop(values, states, results, self._select, entered, update)
        except _OddShape:
            raise
        except Exception as error:
            failure = failure_in(loop, error.__traceback__)
            record = failure.variables.get("record") if failure else None
            raise user_code_error(self._explained(error, failure, update), self.context, record) from error

    def _explained(self, error: Exception, failure: Failure | None, update: Callable[[Any, Any], Any]) -> Exception:
        """The error with the frame of the user's function, where that was written out in the loop."""
        if failure is None:
            return error
        record, current = failure.variables.get("record"), failure.variables.get("current")
        if self.pairs is not None:
            current = pair_of(failure.variables.get("key"), current, self.pairs.key_at)
        if failure.line == UPDATE_LINE:
            return raised_by(update, [current, record], error)
        return raised_by(self._select, [record], error)


def _as_it_is(record: Any) -> Any:
    return record


class KeyedReduceOperator(KeyedOperator):
    """``reduce(result so far, value)`` per key.

    A function that changes its first argument and returns it would also change what was emitted before. So where a key's first value could be
    changed in place, what is emitted are copies (``enable_object_reuse`` turns that off). Only first values are looked at: what reduce makes of
    values that cannot change is of their kind.
    """

    def __init__(self, function: Any, key: KeySpec) -> None:
        super().__init__(key)
        method_of(function, "reduce")
        self.function = function

    def open(self) -> None:
        super().open()
        open_function(self.function, self.context, self.backend)
        if may_ask_for_state(self.function):
            self.set_key_first()
        self._reduce = method_of(self.function, "reduce")
        self._update_text = call_or_inline(self._reduce, "update", "current", "record")
        self.keep_values_only(self._update_text)
        self._careful = not self.context.object_reuse and could_be_mutated(self.values.values())  # what was restored counts as first values

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()

    def process_batch(self, batch: Batch) -> None:
        batch = rows(batch)
        results: list[Any] = []
        entered = _as_it_is if self.context.object_reuse else _only_safe
        if self.pairs is not None:
            self.run_pairs(batch.values, results, entered, self._reduce)
        if self.pairs is None and not self._careful:
            try:
                self.run_loop(self.loop(self._update_text), batch.values[len(results) :], results, entered, self._reduce)
            except _OddShape:
                self._careful = True
        if self._careful:
            rest = batch.values[len(results) :]
            self.run_loop(self.loop(self._update_text, "private_copy(value)"), rest, results, private_copy, self._reduce)
        self.output.emit(RowBatch(results, batch.timestamps))


def _only_safe(record: Any) -> Any:
    if not is_safe(record):
        raise _OddShape
    return record


class KeyedAggregateOperator(KeyedOperator):
    """``sum``, ``min``, ``max`` replace one field of the key's first element by the running value; ``min_by``, ``max_by`` keep the whole
    element that has it, the first one where several do.

    ``position`` is an index, a field name (dict key, Row field or attribute), or None for the value itself. The loop is specialised for what
    the first record is; at the first record of another shape the operator goes over to the general one for good.
    """

    takes_updates = False

    def __init__(self, kind: str, position: int | str | None, key: KeySpec) -> None:
        super().__init__(key)
        if kind not in AGGREGATES:
            raise ProgramError(f"{kind!r} is no aggregate; choose one of {', '.join(AGGREGATES)}")
        if isinstance(position, bool) or not isinstance(position, (int, str, type(None))):
            raise ProgramError(f"the position of an aggregate is an index, a field name or None, not {position!r}")
        self.kind, self.position = kind, position

    def open(self) -> None:
        super().open()
        self._special: KeyedLoop | None = None
        self._shape: tuple[type, int] | None = None
        self._general = self.loop("update(current, record)")

    def process_batch(self, batch: Batch) -> None:
        batch = rows(batch)
        if self._shape is None:
            self._specialise(batch.values[0])
        results: list[Any] = []
        if self.pairs is not None:
            self.run_pairs(batch.values, results, _as_it_is, self._update)
        if self.pairs is None and self._special is not None:
            try:
                self.run_loop(self._special, batch.values[len(results) :], results, self._entered, self._update)
            except _OddShape:
                self._special = None
        if self.pairs is None and self._special is None:
            self.run_loop(self._general, batch.values[len(results) :], results, _as_it_is, self._update)
        self.output.emit(RowBatch(results, batch.timestamps))

    def _specialise(self, sample: Any) -> None:
        if self.position == 0 and not hasattr(type(sample), "__getitem__"):
            self.position = None  # PyFlink's default position: of plain numbers it is the number itself
        self._shape = _shape(sample)
        expression = update_expression(self.kind, self.position, sample)
        self.keep_values_only(expression or "current")
        alike = self.pairs is not None or all(_shape(value) == self._shape for value in self.values.values())  # there are some after a restore
        self._special = self.loop(expression) if expression is not None and alike else None

    def _entered(self, record: Any) -> Any:
        if _shape(record) != self._shape:
            raise _OddShape
        return record

    def _update(self, current: Any, record: Any) -> Any:
        """The general form, for any container and any mixture of them."""
        old, new = field_of(current, self.position), field_of(record, self.position)
        if self.kind == "sum":
            return with_field(current, self.position, old + new)
        better = new < old if self.kind.startswith("min") else new > old
        if not better:
            return current
        return record if self.kind.endswith("_by") else with_field(current, self.position, new)


def _shape(record: Any) -> tuple[type, int]:
    return type(record), len(record) if type(record) is tuple else 0


def update_expression(kind: str, position: int | str | None, sample: Any) -> str | None:
    """The update as an expression over ``current`` and ``record``, for records of the sample's shape; None where there is no fast one.

    >>> update_expression("sum", 1, ("word", 1))
    '(current[0], current[1] + record[1])'
    """
    if isinstance(position, str) and not position.isidentifier() and not is_indexed(sample, position):
        return None
    access = "" if position is None else f"[{position!r}]" if is_indexed(sample, position) else f".{position}"
    old, new = "current" + access, "record" + access
    better = f"{new} {'<' if kind.startswith('min') else '>'} {old}"
    if kind.endswith("_by"):
        return f"record if {better} else current"
    if position is None:
        return f"{old} + {new}" if kind == "sum" else f"{new} if {better} else {old}"
    if type(sample) is not tuple or isinstance(position, str) or not -len(sample) <= position < len(sample):
        return None
    index, arity = position % len(sample), len(sample)
    changed = f"{old} + {new}" if kind == "sum" else new
    fields = ", ".join(changed if field == index else f"current[{field}]" for field in range(arity))
    replaced = f"({fields}{',' if arity == 1 else ''})"
    return replaced if kind == "sum" else f"{replaced} if {better} else current"
