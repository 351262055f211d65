"""Slices of rows: a dict from key to accumulator for each slice, filled and put together by
generated loops (``accumulation``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import Any

from flinkpy.core.clock import Turns
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_key, canonical_keys
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.output.output_isolation import none_idle
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.yielding import Results, stamp_new
from flinkpy.state.backend import KeyedStateBackend
from flinkpy.state.heap.sampled_sizes import bytes_of_entries, bytes_of_parts
from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import Overlay, View, looking_at, parts_of_entries
from flinkpy.state.snapshots.frozen_tables import parts_of
from flinkpy.state.timed_entries import SlicesBeyondMemory
from flinkpy.windowing.general.evaluation import check_window_function
from flinkpy.windowing.slices.accumulation import SliceLoops, States, check_aggregate
from flinkpy.windowing.slices.store import Evaluated, Saved, SliceStore
from flinkpy.windowing.slices.window_calls import SliceFunction, can_follow_slices
from flinkpy.windowing.slicing import Slicing
from flinkpy.windowing.windows import TimeWindow

ON_DISK = "_slices on disk"  # key -> {(slice, None): accumulator}
_AT_ONCE = 1 << 10  # accumulators between two turns


class RowSlices(SliceStore):
    """``kind`` is sum, min, max, min_by, max_by (of the field at ``position``), count or reduce.

    ``sum``, ``min`` and ``max`` give the window's first record of the key with the field replaced,
    ``min_by`` and ``max_by`` a whole record, ``count`` the number of records; a ``window_function``
    is called with that one value. Without a key all records are one group."""

    state_name = "_slices"  # key -> [(slice, accumulator), ...]
    # keys, up to which a freeze copies all of a slice; windows may have many small ones
    copied_at_once: int = 64

    def __init__(
        self,
        key: KeySpec | None,
        kind: str,
        position: int | str | None = None,
        reduce_function: object = None,
        window_function: object = None,
    ) -> None:
        check_aggregate(kind, position)
        if key is not None:
            key_function(key)
        if kind == "reduce":
            method_of(reduce_function, "reduce")
        self.key = key
        self.kind = kind
        self.position = position
        self.reduce_function = reduce_function
        self.window_function = window_function
        check_window_function(window_function, key is not None)
        if not can_follow_slices(window_function):
            raise ProgramError(
                f"{type(window_function).__name__} has a clear() of its own, which the "
                "general window operator calls, not this one"
            )

    def open(self, context: OperatorContext, backend: KeyedStateBackend | None) -> None:
        select = None
        if self.key is not None:
            open_function(self.key.selector, context)
            select = key_function(self.key)
        open_function(self.reduce_function, context)
        self._context = context
        self._select: Callable[[Any], Any] = select or _no_key
        self._function: SliceFunction | None = None
        if self.window_function is not None and backend is not None:
            self._function = SliceFunction(
                self.window_function, self.key is not None, context, backend
            )
        self._loops = SliceLoops(self.kind, self.position, self.reduce_function, select, context)
        self._slices: dict[int, States] = {}
        self._layers: dict[int, Layers] = {}  # of slices that were frozen
        self._unsettled: set[int] = set()  # those of them that have something left to do
        self._copy = (
            None
            if self.kind == "count" or (context.object_reuse and self.kind != "reduce")
            else private_copy
        )
        self._mutable: dict[int, tuple[int, bool]] = {}
        entries = None if backend is None else backend.timed_entries(ON_DISK)
        self._beyond = None if entries is None else SlicesBeyondMemory(entries)
        if backend is not None:
            self._take_in(backend.take_timed(ON_DISK) if entries is None else {})

    def close(self) -> None:
        if hasattr(self, "_loops"):
            self._loops.forget()
        try:
            close_function(self.reduce_function)
            if getattr(self, "_function", None) is not None:
                close_function(self.window_function)
        finally:
            if self.key is not None:
                close_function(self.key.selector)

    @property
    def nbytes(self) -> int:
        return bytes_of_parts(list(self._slices.values()), len, bytes_of_entries)

    def freeze(self) -> Callable[[Turns], Iterable[Saved]]:
        for start in self._slices.keys() - self._layers.keys():
            self._layers[start] = Layers(
                self.state_name,
                self._slices[start],
                partial(self._rebind, start),
                self._copy,
                self.copied_at_once,
            )
        held = [(start, self._layers[start].freeze()) for start in self._slices]
        if self._beyond is not None:  # in front, as what is in memory is valid
            held = [*self._beyond.leaving.items(), *held]
        self._unsettled = {start for start, layers in self._layers.items() if not layers.is_settled}
        return partial(_by_key, held, self._copy)

    def _rebind(self, start: int, states: States) -> None:
        self._slices[start] = states

    def after_batch(self) -> None:
        if self._unsettled:
            for start in self._unsettled:
                self._layers[start].after_batch()
            self._unsettled = {
                start for start in self._unsettled if not self._layers[start].is_settled
            }

    def _take_in(self, saved: Mapping[Any, Mapping[tuple[int, Any], Any]]) -> None:
        """What lay on disk when it was saved, or still does."""
        for key, by_moment in saved.items():
            for (start, _), accumulator in by_moment.items():
                self._slice(start)[key] = accumulator
        for start in self._beyond.starts if self._beyond is not None else ():
            self._slice(start)
        if self._slices:  # the accumulators may be of any shape
            self._loops.generalise()

    def restore(self, saved: Mapping[Any, Any]) -> Mapping[Any, Any]:
        accumulators: list[Any] = []
        for key, slices in saved.items():
            for start, accumulator in slices:
                self._slice(start)[key] = accumulator
                accumulators.append(accumulator)
        self._loops.restored(accumulators)
        return {key: key for key in saved}

    # -- batches -----------------------------------------------------------------------------------

    def records_of(self, batch: Batch) -> list[Any]:
        return rows(batch).values

    def span(self, batch: Batch) -> tuple[int, int] | None:
        stamps = rows(batch).timestamps
        return None if stamps is None else (min(stamps), max(stamps))

    def stamps(self, batch: Batch) -> list[int]:
        return rows(batch).timestamps or []

    def by_slice(
        self, batch: Batch, records: list[Any], slicing: Slicing
    ) -> Iterator[tuple[int, list[Any]]]:
        width, offset = slicing.width, slicing.offset
        parts: dict[int, list[Any]] = {}
        end = begin = 0
        append: Callable[[Any], None] = [].append
        for record, stamp in zip(records, self.stamps(batch)):
            if not begin <= stamp < end:
                begin = stamp - (stamp - offset) % width
                end = begin + width
                append = parts.setdefault(begin, []).append
            append(record)
        return iter(parts.items())

    def one(self, records: list[Any], position: int) -> list[Any]:
        return [records[position]]

    def late_records(self, batch: Batch, positions: list[int]) -> RowBatch:
        values, stamps = rows(batch).values, self.stamps(batch)
        return RowBatch([values[at] for at in positions], [stamps[at] for at in positions])

    # -- slices ------------------------------------------------------------------------------------

    @property
    def starts(self) -> Collection[int]:
        return self._slices.keys()

    def add(self, start: int, records: list[Any]) -> None:
        states = self._slice(start)
        if self._beyond is not None:
            self._fetch(self._beyond, start, records, states)
        self._add(records, states)

    def _add(self, records: list[Any], states: States) -> None:
        self._loops.add(records, states)

    def _keys(self, records: list[Any]) -> list[Any]:
        return canonical_keys([self._select(record) for record in records])

    def _fetch(
        self, beyond: SlicesBeyondMemory, start: int, records: list[Any], states: States
    ) -> None:
        """Brings into memory what records of these keys are added to."""
        beyond.touch(start, len(records))
        if start in beyond.starts:
            try:
                keys = dict.fromkeys(self._keys(records))
            except Exception:  # when it is added, the record is named
                return
            found = beyond.read(start, [key for key in keys if key not in states])
            if start in beyond.leaving and self._copy is not None:
                found = {key: self._copy(value) for key, value in found.items()}
            states.update(found)

    def relieve(self) -> None:
        beyond = self._beyond
        if beyond is None:
            return
        if beyond.is_due:
            for start in beyond.to_be_written(self._slices):
                beyond.leave(start, self._slices[start])
                self._slices[start] = self._loops.new_states()
                self._let_go(start)
        beyond.write_some()

    @property
    def is_on_disk(self) -> bool:
        return self._beyond is not None and bool(self._beyond.starts)

    def _let_go(self, start: int) -> None:
        """Of what was known of the dict of this slice, which is gone."""
        self._mutable.pop(start, None)
        self._layers.pop(start, None)
        self._unsettled.discard(start)

    def _slice(self, start: int) -> States:
        states = self._slices.get(start)
        if states is None:
            states = self._slices[start] = self._loops.new_states()
        return states

    def forget(self, starts: list[int], is_over: Callable[[TimeWindow], bool]) -> None:
        for start in starts:
            del self._slices[start]
            self._let_go(start)
            if self._beyond is not None:
                self._beyond.forget(start)
        if self._function is not None:
            self._function.forget(is_over)

    def evaluate(self, starts: list[int], survives: Callable[[int], bool]) -> States:
        return self._loops.together(
            [self._taken(start, start == starts[0], survives(start)) for start in starts]
        )

    def parts(self, starts: list[int], survives: Callable[[int], bool]) -> Iterable[States]:
        """First the keys that are in memory, with what there is of them on disk."""
        beyond = self._beyond
        if beyond is None or beyond.starts.isdisjoint(starts):
            yield self.evaluate(starts, survives)
            return
        beyond.finish(starts)
        slices = [(start, self._slices[start]) for start in starts]
        known = dict.fromkeys(key for _, states in slices for key in states)
        left = iter(known)
        while keys := list(islice(left, beyond.at_once)):
            yield self._loops.together([self._of(*each, keys, beyond) for each in slices])
        for others in beyond.all_but(starts, known):
            yield self._loops.together(others)

    def _of(
        self, start: int, states: States, keys: list[Any], beyond: SlicesBeyondMemory
    ) -> States:
        """What these keys have in a slice; nobody else has it."""
        found, copy = looking_at(states), self._copy
        here = {key: found(key) for key in keys if key in states}
        if copy is not None:
            here = {key: copy(value) for key, value in here.items()}
        return beyond.read(start, [key for key in keys if key not in here]) | here

    def evaluate_key(self, starts: list[int], record: list[Any]) -> States:
        key = canonical_key(self._select(record[0]))
        if self._beyond is not None:
            for start in starts:
                self._fetch(self._beyond, start, record, self._slices[start])
        found = [self._slices[start] for start in starts]
        return {
            key: self._loops.together(
                [{None: private_copy(states[key])} for states in found if key in states]
            )[None]
        }

    def only(self, contents: States, is_wanted: Callable[[Any], bool]) -> States:
        return {key: value for key, value in contents.items() if is_wanted(key)}

    def _taken(self, start: int, is_first: bool, survives: bool) -> States:
        """The accumulators of a slice for putting together: what is emitted must not change what
        later windows are made of."""
        states = self._slices[start]
        is_frozen = type(states) is Overlay  # what is below it must not change either
        if not survives and not is_frozen:
            return states
        if self._could_be_mutated(start, states):
            return {key: private_copy(value) for key, value in states.items()}
        if is_frozen:
            return states.copy()
        return dict(states) if is_first else states

    def _could_be_mutated(self, start: int, states: States) -> bool:
        """Whether somebody could change an accumulator of this slice in place. Looked at again when
        the slice has new keys: an accumulator that was immutable stays immutable."""
        if self.kind == "count" or (self._context.object_reuse and self.kind != "reduce"):
            return False
        keys, mutable = self._mutable.get(start, (0, False))
        if keys != len(states) and not mutable:
            mutable = could_be_mutated(states.values())
            self._mutable[start] = len(states), mutable
        return mutable

    # -- results -----------------------------------------------------------------------------------

    def emit(self, windows: Iterable[Evaluated], now: int, operator: StreamOperator) -> Work:
        """In batches of the usual size, if there is no function."""
        if self._function is not None:
            yield from self._function.evaluate(windows, now, operator)
            return
        results, limit = Results(True), self._context.batch_records
        for window, merged in windows:
            given = merged.values()
            results.values.extend(none_idle(given) if self.kind == "reduce" else given)
            stamp_new(results, window.end - 1)
            if len(results.values) >= limit:
                yield from self._emit_results(results, operator)
                results = Results(True)
        yield from self._emit_results(results, operator)

    def _emit_results(self, results: Results, operator: StreamOperator) -> Work:
        values, stamps, limit = results.values, results.stamps or [], self._context.batch_records
        for at in range(0, len(values), limit):
            operator.output.emit(RowBatch(values[at : at + limit], stamps[at : at + limit]))
            if at + limit < len(values):
                yield


def _by_key(
    held: list[tuple[int, Mapping[Any, Any]]], copy: Callable[[Any], Any] | None, turns: Turns
) -> Iterator[Saved]:
    """The frozen slices, with copies of what is changed in place as soon as they are not frozen any
    more."""
    by_key: dict[Any, list[tuple[int, Any]]] = {}
    for start, states in held:
        for keys, accumulators in parts_of_entries(states, _AT_ONCE):
            for key, accumulator in zip(
                keys, accumulators if copy is None else map(copy, accumulators)
            ):
                if key in by_key:
                    by_key[key].append((start, accumulator))
                else:
                    by_key[key] = [(start, accumulator)]
            turns.give_way()
        if isinstance(states, View):
            states.check()
    for part in parts_of(by_key, turns):
        yield from ((key, key, by_key[key]) for key in part)


def _no_key(record: object) -> None:
    return None
