"""Events of columns that nobody has looked at as objects: a place in a batch of candidates.

If all conditions are expressions, the loop needs no event itself. It becomes a Row in a match, all
of many matches at once; or when state is written. As long as a partial match has one of them, the
candidates of its batch stay in memory; so this is for patterns with a ``within`` only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flinkpy.cep.automaton.partial_matches import Aside, Found
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.event_conditions import Always, Condition, Not, OfColumns, TwoConditions
from flinkpy.columns.values.conversion import python_values, rows_of_batch
from flinkpy.common.types import LateValues, Row, late_rows, named_row

if TYPE_CHECKING:
    import numpy.typing as npt


class CandidateRows(Aside):
    """Rows of some batches that are candidates, numbered through all of them."""

    __slots__ = ("_columns", "_data", "_ends")

    def __init__(self, data: list[pa.RecordBatch]) -> None:
        self._data = data
        self._ends = np.cumsum([each.num_rows for each in data])
        self._columns: list[list[Any]] | None = None

    def event(self, at: int) -> Row:
        """One of the rows, of which others will be asked for."""
        if self._columns is None:
            self._columns = [
                [value for each in self._data for value in python_values(each.column(position))]
                for position in range(self._data[0].num_columns)
            ]
        names = tuple(self._data[0].schema.names)
        return named_row(names, [column[at] for column in self._columns])

    def late_rows(self, places: npt.NDArray[np.int64]) -> list[Row]:
        """The rows at these places, with values that are made when somebody looks at one."""
        late = LateValues(lambda: self.values(places))
        return late_rows(tuple(self._data[0].schema.names), len(places), late)

    def values(self, places: npt.NDArray[np.int64]) -> list[list[Any]]:
        """The values of the rows at these places."""
        if len(self._data) == 1:
            return _values_at(self._data[0], places)
        batches = np.searchsorted(self._ends, places, side="right")
        found: list[list[Any]] = [[]] * len(places)
        for number, data in enumerate(self._data):
            which = np.flatnonzero(batches == number)
            within = places[which] - (self._ends[number] - data.num_rows)
            for at, values in zip(which.tolist(), _values_at(data, within)):
                found[at] = values
        return found


def _values_at(data: pa.RecordBatch, places: npt.NDArray[np.int64]) -> list[list[Any]]:
    if not data.num_columns:  # Arrow takes no rows without columns
        return [[] for _ in places]
    taken = data.take(pa.array(places))
    try:
        columns = [python_values(column) for column in taken.columns]
    except (OverflowError, ValueError, pa.ArrowException):
        return [row._values for row in rows_of_batch(taken)]  # which names the value
    return list(map(list, zip(*columns)))


def as_it_is(row: Row) -> Row:
    """What a place was pickled as, in state of older versions."""
    return row


def places_of(rows: CandidateRows, numbers: list[int]) -> list[Any]:
    """A place for each of these rows."""
    return list(zip(repeat(rows), numbers))


def with_rows(found: Sequence[Found], own: Callable[[Any], Any]) -> Sequence[Found]:
    """The same matches, with rows of their own in the lists of their events."""
    lists = [events for each in found for events in each.match.values()]
    events = list(chain.from_iterable(lists))
    places = [at for at, event in enumerate(events) if type(event) is tuple]
    if len(places) == len(events):
        made = _rows_at(events)
    else:
        made = [event if type(event) is tuple else own(event) for event in events]
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
        for at, row in zip(some.tolist(), batch.late_rows(numbers[some])):
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
