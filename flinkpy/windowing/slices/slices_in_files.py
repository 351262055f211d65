"""Slices of rows that a batch job has no room for in memory.

No window closes before the input ends, so all accumulators of a job wait. A slice that does not fit
is written: its accumulators first, and then its records as they come, so that they are put together
in the order in which they would be in memory. A window that needs such slices is put together in
portions, each with all that some keys have in it."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, groupby
from operator import itemgetter, length_hint
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from flinkpy.core.keys import canonical_keys, key_groups
from flinkpy.core.memory import SizeEstimator
from flinkpy.operators.spilling.record_pickler import RecordPickler
from flinkpy.operators.spilling.spilled_slices import PieceForm, SpilledSlices
from flinkpy.operators.user_errors import user_code_error
from flinkpy.windowing.slices.accumulation import States
from flinkpy.windowing.slices.row_slices import RowSlices
from flinkpy.windowing.slices.store import SliceStore
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:  # it imports Arrow
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

_ENTRY = 200  # bytes that an accumulator takes beside itself, with its key
_slice_and_kind = itemgetter(0, 1)


class Piece(NamedTuple):
    """Of a slice either pairs of a key and its accumulator, or records."""

    start: int
    is_reduced: bool
    values: list[Any]


class PiecesForm(PieceForm[Piece]):
    """Pickled, as what a batch job sorts. ``keys_of`` gives the keys of records."""

    at_once: ClassVar[int] = 1 << 12  # values in a piece

    def __init__(self, keys_of: Callable[[list[Any]], list[Any]]) -> None:
        self._keys_of = keys_of
        self._sizes, self._pickler = SizeEstimator(), RecordPickler()

    def size(self, piece: Piece) -> int:
        values = piece.values
        return int(self._sizes.bytes_of_rows(values)) + _ENTRY * len(values) if values else 0

    def dumps(self, piece: Piece) -> bytes:
        return self._pickler.dumps(tuple(piece))

    def loads(self, data: bytes) -> Piece:
        piece = Piece(*pickle.loads(data))
        if not piece.is_reduced:
            return piece
        keys = canonical_keys([key for key, _ in piece.values])
        return piece._replace(values=[(key, pair[1]) for key, pair in zip(keys, piece.values)])

    def by_key(self, piece: Piece, parts: int) -> Iterable[tuple[int, Piece]]:
        values = piece.values
        keys = [key for key, _ in values] if piece.is_reduced else self._keys_of(values)
        found: dict[int, Piece] = {}
        for group, value in zip(key_groups(keys, parts), values):
            part = found.get(group)
            if part is None:
                part = found[group] = piece._replace(values=[])
            part.values.append(value)
        return found.items()

    def together(self, pieces: list[Piece]) -> Iterator[Piece]:
        for (start, is_reduced), some in groupby(pieces, key=_slice_and_kind):
            values = list(chain.from_iterable(piece.values for piece in some))
            yield from self.cut(start, is_reduced, values)

    def cut(self, start: int, is_reduced: bool, values: list[Any]) -> Iterator[Piece]:
        """The values in pieces."""
        for begin in range(0, len(values), self.at_once):
            yield Piece(start, is_reduced, values[begin : begin + self.at_once])


class RowSlicesInFiles(RowSlices):
    """Of a slice that was written the dict in memory is empty, and its records wait."""

    def __init__(self, of: RowSlices, memory: OperatorMemory) -> None:
        super().__init__(of.key, of.kind, of.position, of.reduce_function, of.window_function)
        self._form = PiecesForm(self._keys_of)
        self._spilled = SpilledSlices(self._form, memory)
        self._waiting: dict[int, list[Piece]] = {}  # of slices that were written

    def _keys_of(self, records: list[Any]) -> list[Any]:
        left = iter(records)
        try:
            return canonical_keys(list(map(self._select, left)))
        except BaseException as error:  # the iterator knows how far it got
            at = len(records) - length_hint(left) - 1
            raise user_code_error(error, self._context, records[at]) from error

    # -- records come ------------------------------------------------------------------------------

    def add(self, start: int, records: list[Any]) -> None:
        states, waiting = self._slice(start), self._waiting.get(start)
        if waiting is not None:
            waiting.append(piece := Piece(start, False, records))
            self._spilled.note(start, piece)
        else:
            known = len(states)
            self._add(records, states)
            if len(states) > known:  # records like these are the first of their keys
                self._spilled.note(start, Piece(start, True, records[known - len(states) :]))
        self._spilled.spill(self._given_away)

    def free_memory(self) -> None:
        self._spilled.spill(self._given_away, 0)

    def _given_away(self, start: int) -> Iterator[Piece]:
        """What there is of a slice, which has nothing in memory from now on."""
        waiting, self._waiting[start] = self._waiting.get(start), []
        if waiting is not None:
            return self._form.together(waiting)
        states, self._slices[start] = self._slices[start], self._loops.new_states()
        self._let_go(start)
        return self._form.cut(start, True, list(states.items()))

    def forget(self, starts: list[int], is_over: Callable[[TimeWindow], bool]) -> None:
        super().forget(starts, is_over)
        for start in starts:
            self._waiting.pop(start, None)

    # -- windows -----------------------------------------------------------------------------------

    def parts(self, starts: list[int], survives: Callable[[int], bool]) -> Iterable[States]:
        self._spilled.close_windows()
        if self._waiting.keys().isdisjoint(starts):
            yield self.evaluate(starts, survives)
            return
        held = {start: self._held(start, start == starts[0], survives(start)) for start in starts}
        for portion in self._spilled.portions(starts, held):
            slices: dict[int, States] = {}
            for start, is_reduced, values in portion:
                states = slices.get(start)
                if states is None:
                    states = slices[start] = self._loops.new_states()
                if is_reduced:
                    states.update(values)
                else:
                    self._add(values, states)
            yield self._loops.together([slices[start] for start in starts if start in slices])

    def _held(self, start: int, is_first: bool, survives: bool) -> list[Piece]:
        """What memory has of a slice; what is emitted must not change what later windows are made
        of."""
        waiting = self._waiting.get(start)
        if waiting is None:
            states = self._taken(start, is_first, survives)
            return [Piece(start, True, list(states.items()))]
        copy = self._copy
        if copy is None or not survives:
            return waiting
        return [piece._replace(values=list(map(copy, piece.values))) for piece in waiting]


def in_files(store: SliceStore, memory: OperatorMemory) -> SliceStore:
    """The store, which is not open yet, as a batch job has it where memory is limited."""
    if type(store) is RowSlices:
        return RowSlicesInFiles(store, memory)
    store.spill_to(memory)
    return store
