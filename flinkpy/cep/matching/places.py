"""Events of columns that nobody has looked at as objects: a place in a batch of candidates.

If all conditions are expressions, the loop needs no event itself. It becomes a Row in a match, all
of many matches at once; or when state is written. As long as a partial match has one of them, the
candidates of its batch stay in memory; so this is for patterns with a ``within`` only."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.cep.automaton.partial_matches import Found
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.event_conditions import Always, Condition, Not, OfColumns, TwoConditions
from flinkpy.columns.values.conversion import python_values, rows_of_batch
from flinkpy.common.types import Row, named_row

if TYPE_CHECKING:
    import numpy.typing as npt


class CandidateRows:
    """Rows of a batch that are candidates."""

    __slots__ = ("_columns", "_data")

    def __init__(self, data: pa.RecordBatch) -> None:
        self._data = data
        self._columns: list[list[Any]] | None = None

    def row(self, at: int) -> Row:
        """One of the rows, of which others will be asked for."""
        if self._columns is None:
            self._columns = [python_values(column) for column in self._data.columns]
        names = tuple(self._data.schema.names)
        return named_row(names, [column[at] for column in self._columns])

    def rows(self, places: npt.NDArray[np.int64]) -> list[Row]:
        """The rows at these places."""
        return rows_of_batch(self._data.take(pa.array(places)))


class Place(tuple[CandidateRows, int]):
    """Stands for an event. Pickled, it is the row."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        rows, at = self
        return as_it_is, (rows.row(at),)

    def __repr__(self) -> str:
        rows, at = self
        return repr(rows.row(at))


def as_it_is(row: Row) -> Row:
    """What a pickled place becomes."""
    return row


def places_of(data: pa.RecordBatch) -> list[Any]:
    """A place for each row."""
    rows = CandidateRows(data)
    return list(map(tuple.__new__, repeat(Place), zip(repeat(rows), range(data.num_rows))))


def with_rows(found: list[Found], own: Callable[[Any], Any]) -> list[Found]:
    """The same matches, with rows of their own in the lists of their events."""
    lists = [events for each in found for events in each.match.values()]
    events = list(chain.from_iterable(lists))
    places = [at for at, event in enumerate(events) if type(event) is Place]
    if len(places) == len(events):
        made = _rows_at(events)
    else:
        made = [event if type(event) is Place else own(event) for event in events]
        for at, row in zip(places, _rows_at([events[at] for at in places])):
            made[at] = row
    upcoming = iter(made)
    for each in lists:
        each[:] = islice(upcoming, len(each))
    return found


def _rows_at(places: list[Any]) -> list[Any]:
    """The rows at these places, for each batch at once."""
    if not places:
        return []
    batches: dict[CandidateRows, int] = {}
    of_place = [batches.setdefault(batch, len(batches)) for batch, _ in places]
    numbers = np.array([number for _, number in places])
    order = np.argsort(of_place, kind="stable")
    ends = np.cumsum(np.bincount(of_place))
    rows: list[Any] = [None] * len(places)
    for batch, some in zip(batches, np.split(order, ends[:-1])):
        for at, row in zip(some.tolist(), batch.rows(numbers[some])):
            rows[at] = row
    return rows


def needs_no_events(automaton: Automaton) -> bool:
    """Whether all conditions are expressions, and no partial match lasts for ever."""
    return automaton.within_ms > 0 and all(map(is_expression, automaton.conditions()))


def is_expression(condition: Condition) -> bool:
    """Whether it is computed of columns alone."""
    if isinstance(condition, TwoConditions):
        return is_expression(condition.first) and is_expression(condition.second)
    if isinstance(condition, Not):
        return is_expression(condition.condition)
    return isinstance(condition, (Always, OfColumns))
