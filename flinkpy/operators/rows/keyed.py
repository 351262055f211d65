"""Keyed operators over rows: reduce, and the running aggregates sum, min, max, min_by, max_by.

Each record emits its key's result so far at once (Flink's streaming semantics); the first record of
a key is its own result. All operators share one generated loop (``keyed_loops``) with the update in
its middle: for reduce a call of the user's function, for the aggregates an expression. The loop
runs over the state backend's own dict (``engine_values``), or over the values that the backend
lends for the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from flinkpy.aggregates.of_records import FieldAggregate, Shape, shape_of
from flinkpy.common.changelog_mode import INSERT_ONLY
from flinkpy.core.codegen.generated import Failure, failure_in, forget_source
from flinkpy.core.codegen.inlining import call_or_inline, raised_by
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError, UserCodeError
from flinkpy.core.keys import canonical_key
from flinkpy.core.mutability import could_be_mutated, is_safe
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, Guarding, OneInputOperator
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.keyed_state import KeyedStateOperator, may_ask_for_state
from flinkpy.operators.output.output_isolation import private
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed_loops import (
    CALLED,
    LENT_UPDATE_LINE,
    UPDATE_LINE,
    KeyedLoop,
    keyed_loop,
    keys_of_all,
    loop_over_view,
    makes_objects,
)
from flinkpy.operators.rows.keyed_pairs import PairForm, pair_form
from flinkpy.operators.user_errors import user_code_error
from flinkpy.state.heap.running_values import RUNNING_RESULT, RunningValues
from flinkpy.state.snapshots.saved_state import SavedState


def key_function(key: KeySpec) -> Callable[[Any], Any]:
    """The function from a row to its key; raises ProgramError for a stream keyed by columns
    only."""
    if key.selector is None:
        raise ProgramError(
            f"a row operator needs a key selector, but the stream is keyed by columns {key.columns}"
        )
    return method_of(key.selector, "get_key")


class _OddShape(Exception):
    """A record that the current loop cannot handle; the general loop handles it and the records
    after it."""


class KeyedOperator(KeyedStateOperator, OneInputOperator):
    """What the keyed operators over rows share: the key selector, one value per key, the loops.
    ``falls_back``: where the update's expression raises, the loop calls ``update`` instead."""

    batch_form = BatchForm.LAST_RESULT_OF_KEY
    keeps_timestamps = replaces_results = True
    guarding = Guarding.BY_RECORD
    falls_back = False

    def __init__(self, key: KeySpec) -> None:
        key_function(key)
        self.key = key

    def initialize_state(self, restored: SavedState | None) -> None:
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

    def last_results(self) -> Iterator[RowBatch]:
        """The result of each key so far, when the input has ended."""
        results = iter(self.values.values())
        while chunk := list(islice(results, self.context.batch_records)):
            yield RowBatch(chunk)

    def set_key_first(self) -> None:
        """For a function with state of its own: selecting a key also sets it as current. Keys are
        then selected one at a time."""
        select, current = key_function(self.key), self.backend.current

        def select_and_set(record: object) -> Any:
            current.key = key = canonical_key(select(record))
            return key

        self._select = select_and_set

    def run(
        self,
        update_text: str,
        emitted: str,
        values: list[Any],
        results: list[Any],
        entered: Callable[[Any], Any],
        update: Callable[[Any, Any], Any],
    ) -> None:
        """Runs the loop with that update over the records and the state. If user code raises, the
        error names the record."""
        states = self.values
        if isinstance(states, RunningValues):
            plain = states.plain()
            if plain is None:
                values = self._run_lent(states, values, results, update)
                if not values:
                    return
                plain = states.plain()
            states = states if plain is None else plain
        # a database may find a key in any form
        selected = "{}" if isinstance(states, dict) else "canonical({})"
        name = (selected, update_text, emitted)
        loop = self._made(
            name,
            lambda: keyed_loop(
                update_text, emitted, selected.format(self._selected()), self.falls_back
            ),
        )
        with self._told(loop, update):
            loop(values, states, results, self._select, entered, update)

    def _run_lent(
        self,
        held: RunningValues,
        values: list[Any],
        results: list[Any],
        update: Callable[[Any, Any], Any],
    ) -> list[Any]:
        """Runs the loop over a table of numbers, if the state is one. At the first record that does
        not fit a table, the state becomes a dict, and that record and the later ones are
        returned."""
        form, before = self.pairs, len(results)
        assert form is not None
        try:
            keys = self._made(("keys",), lambda: keys_of_all(self._selected()))(
                values, self._select
            )
            view = held.view_batch(keys)
        except Exception:
            view = None
        if view is not None:
            loop = self._made(("view", form.update), lambda: loop_over_view(form))
            try:
                with self._told(loop, update):
                    loop(zip(keys, view.places, values), view.states, results, _OddShape)
            except _OddShape:
                pass
            except UserCodeError:
                if not self.falls_back:
                    raise
            finally:
                held.commit(view)
        rest = values[len(results) - before :]
        if rest:
            held.become_dict()
        return rest

    @contextmanager
    def _told(self, loop: KeyedLoop, update: Callable[[Any, Any], Any]) -> Iterator[None]:
        """Turns an exception of user code into one that names the record."""
        try:
            yield
        except _OddShape:
            raise
        except BaseException as error:
            failure = failure_in(loop, error.__traceback__)
            record = failure.variables.get("record") if failure else None
            raise user_code_error(
                self._explained(error, failure, update), self.context, record
            ) from error

    def keep_pairs(self, update_text: str) -> None:
        """If the update works on pairs and keeps their key, lets the state be a table."""
        self.pairs = pair_form(update_text, self._selected())
        if isinstance(self.values, RunningValues):
            self.values.allow_table(None if self.pairs is None else self.pairs.key_at)

    def _made(self, name: tuple[str, ...], make: Callable[[], KeyedLoop]) -> KeyedLoop:
        """The loop of that name, compiled at its first use."""
        found = self._loops.get(name)
        if found is None:
            found = self._loops[name] = make()
        return found

    def _selected(self) -> str:
        return call_or_inline(self._select, "select", "record")

    def _explained(
        self, error: BaseException, failure: Failure | None, update: Callable[[Any, Any], Any]
    ) -> BaseException:
        """The error with the frame of the user's function, if that function was inlined in the
        loop."""
        if failure is None:
            return error
        record, current = failure.variables.get("record"), failure.variables.get("current")
        updating = UPDATE_LINE
        if "place" in failure.variables and self.pairs is not None:
            current = self.pairs.pair_of(failure.variables.get("key"), current)
            updating = LENT_UPDATE_LINE
        if failure.line == updating:
            return raised_by(update, [current, record], error)
        return raised_by(self._select, [record], error)


def _as_it_is(record: object) -> Any:
    return record


class KeyedReduceOperator(KeyedOperator):
    """``reduce(result so far, value)`` per key.

    A function that changes its first argument in place and returns it would also change results
    emitted earlier. So the operator emits copies of values that could be changed;
    ``enable_object_reuse`` turns that off. An update of only operators and fields turns values that
    cannot be changed into values that cannot be changed, so there it is enough to look at a key's
    first value."""

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
        self._careful = not self.context.object_reuse and (
            # Restored values count as first values
            makes_objects(self._update_text) or could_be_mutated(self.values.values())
        )
        self.keep_pairs(CALLED if self._careful else self._update_text)

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()

    def process_batch(self, batch: Batch) -> None:
        self.backend.between_batches()
        batch = rows(batch)
        values, results = batch.values, list[Any]()
        if not self._careful:
            emitted = "not_idle(value)" if self._update_text == CALLED else "value"
            try:
                self.run(
                    self._update_text,
                    emitted,
                    values,
                    results,
                    _as_it_is if self.context.object_reuse else _only_safe,
                    self._reduce,
                )
            except _OddShape:
                self._careful = True
        if self._careful:
            self.run(
                self._update_text,
                "private(value)",
                values[len(results) :],
                results,
                private,
                self._reduce,
            )
        self.output.emit(RowBatch(results, batch.timestamps))


def _only_safe(record: object) -> Any:
    if not is_safe(record):
        raise _OddShape
    return record


class KeyedAggregateOperator(KeyedOperator):
    """``sum``, ``min``, ``max``, ``min_by``, ``max_by`` (``flinkpy.aggregates.of_records``) of the
    field at ``position``.

    The loop is specialised for the shape of the first record; at the first record of another shape
    the operator switches to the general loop for good."""

    takes_changes = INSERT_ONLY
    falls_back = True

    def __init__(self, kind: str, position: int | str | None, key: KeySpec) -> None:
        super().__init__(key)
        self.aggregate = FieldAggregate(kind, position)

    def open(self) -> None:
        super().open()
        self._special: str | None = None
        self._shape: Shape | None = None

    def process_batch(self, batch: Batch) -> None:
        batch = rows(batch)
        if self._shape is None:
            self._specialise(batch.values[0])
        values, results, update = batch.values, list[Any](), self.aggregate.update
        if self._special is not None:
            try:
                self.run(self._special, "value", values, results, self._entered, update)
            except _OddShape:
                self._special = None
        if self._special is None:
            self.run(CALLED, "value", values[len(results) :], results, _as_it_is, update)
        self.output.emit(RowBatch(results, batch.timestamps))

    def _specialise(self, sample: object) -> None:
        self._shape = shape_of(sample)
        # not empty after a restore
        alike = all(shape_of(value) == self._shape for value in self.values.values())
        self._special = self.aggregate.update_expression(sample) if alike else None
        self.keep_pairs(self._special or CALLED)

    def _entered(self, record: object) -> Any:
        if shape_of(record) != self._shape:
            raise _OddShape
        return record
