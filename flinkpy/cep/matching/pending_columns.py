"""Events of a stream of columns that wait for the watermark.

Batches stay as they came. When the time has come, only those events become objects that can matter
to the pattern (``candidates``): they may begin a match; or their key has a partial match, or gets
one here, and they may change it. The others are skipped, which changes nothing, as all that they
could do is to be ignored. Those beyond their share of memory lie on disk, if there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.cep.automaton.partial_matches import Runs
from flinkpy.cep.event_conditions import Condition
from flinkpy.cep.matching.candidates import Candidates
from flinkpy.cep.matching.events_on_disk import WIDTH, EventsOnDisk, Piece, positions_by, rows_of
from flinkpy.cep.matching.expression_conditions import ExpressionConditions, Marks
from flinkpy.cep.matching.pending_events import PendingEvents
from flinkpy.cep.matching.places import CandidateRows, places_of
from flinkpy.columns.compiler import column_index
from flinkpy.columns.values.conversion import python_values, rows_of_batch
from flinkpy.core.clock import Turns
from flinkpy.core.elements import MIN_TIMESTAMP
from flinkpy.core.keys import canonical_keys
from flinkpy.operators.columnar.key_index import encoded
from flinkpy.operators.columnar.tables_by_group import from_bytes

if TYPE_CHECKING:
    import numpy.typing as npt

Numbers: TypeAlias = "npt.NDArray[np.int64]"
_AT_ONCE = 1 << 14  # events
_EVENT = 32  # bytes that arrays take for an event
SINGLE_KEY = 0  # of all events of a stream without keys


@dataclass
class Events:
    """Events in the order in which the loop takes them. ``truths``: for each condition that is an
    expression, whether it holds; None where that is not known."""

    keys: list[Any] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    truths: list[list[bool | None]] = field(default_factory=list)


@dataclass
class Part:
    """A batch. ``at``: the places of the events that are not taken yet and may matter; of these,
    which may begin a match, and the bits of the states in which they matter."""

    data: pa.RecordBatch
    times: Numbers
    latest: int
    truths: list[Marks | None]
    at: Numbers
    begins: Marks
    matters: Numbers
    nbytes: int = 0  # where there is a disk

    def taken_until(self, now: int) -> Part:
        """What is due, which is left out here from now on."""
        is_due = slice(None) if self.latest <= now else self.times[self.at] <= now
        due = self.with_events(is_due)
        rest = self.with_events(slice(0, 0) if self.latest <= now else ~is_due)  # type: ignore[operator]
        self.at, self.begins, self.matters = rest.at, rest.begins, rest.matters
        return due

    def with_events(self, which: Any) -> Part:
        """The same part with only these of its events."""
        at, begins, matters = self.at[which], self.begins[which], self.matters[which]
        return Part(self.data, self.times, self.latest, self.truths, at, begins, matters)


class PendingColumns:
    """Batches with the times of their events. ``key``: the names of the key's columns. What a
    snapshot held are rows; as long as some of them wait, all events become rows. With ``places``,
    events are places of rows, as the loop does not look at them."""

    def __init__(
        self,
        candidates: Candidates,
        conditions: ExpressionConditions,
        key: tuple[str, ...],
        places: bool = False,
        disk: EventsOnDisk | None = None,
    ) -> None:
        self._places = places
        self._disk = disk
        self._stay = 0  # so many bytes stay, although they are too many
        self._candidates, self._conditions, self._key = candidates, conditions, key
        self._parts: list[Part] = []
        self._taken_until = MIN_TIMESTAMP
        self._restored = PendingEvents()

    def add(self, data: pa.RecordBatch, times: Numbers) -> None:
        """Takes events that have just come; at least one."""
        self._parts.append(self._part(data, times))

    def _part(self, data: pa.RecordBatch, times: Numbers) -> Part:
        truths = self._conditions.of(data)
        known: dict[Condition, Marks] = {
            condition: holds
            for condition, holds in zip(self._conditions.conditions, truths)
            if holds is not None
        }
        begins, matters = self._candidates.among(data.num_rows, known)
        at = np.flatnonzero(begins | (matters != 0))
        has_disk = self._disk is not None and self._disk.memory is not None
        size = data.nbytes + _EVENT * data.num_rows if has_disk else 0
        return Part(data, times, int(times.max()), truths, at, begins[at], matters[at], size)

    # -- when the time has come --------------------------------------------------------------------

    def until(
        self, now: int, runs: Mapping[Any, Runs], keys_of_rows: Callable[[list[Any]], list[Any]]
    ) -> Iterator[Events]:
        """Gives away the events up to ``now`` that matter to the runs of their keys, in their
        order. Use some of them before you ask for the next, for which the runs are looked at
        again. With a disk, for the ``moments`` on the way to ``now``."""
        if self._disk is not None:
            for pieces in self._disk.slices_until(now):
                self._bring_back(pieces)
        due = [part.taken_until(now) for part in self._parts if len(part.at)]
        self._parts = [part for part in self._parts if part.latest > now]
        self._taken_until = max(now, self._taken_until)
        due = [part for part in due if len(part.at)]
        earlier, rows = self._restored.until(now)
        if rows:
            return iter([self._behind(earlier, rows, keys_of_rows(rows), due)])
        return (self._of_some(some, runs) for some in _some_at_once(due))

    def _of_some(self, due: list[Part], runs: Mapping[Any, Runs]) -> Events:
        keys = _keys(due, self._key)
        order = _order(due)
        which = self._chosen(due, order, keys, runs)
        return self._made(due, which, [keys.values[code] for code in keys.codes[which].tolist()])

    def _chosen(self, due: list[Part], order: Numbers | None, keys: Keys, runs: Any) -> Numbers:
        """The numbers of the candidates among the events that are due, in the order of time."""
        begins, matters = (
            np.concatenate(each) for each in zip(*((part.begins, part.matters) for part in due))
        )
        if begins.all():
            return np.arange(len(begins)) if order is None else order
        codes = keys.codes
        if order is not None:
            begins, matters, codes = begins[order], matters[order], codes[order]
        wanted = self._candidates.wanted_by
        wants = np.fromiter(
            (0 if (kept := runs.get(key)) is None else wanted(kept) for key in keys.values),
            np.int64,
            len(keys.values),
        )
        # from the first event on that does something, a key may have runs in any state
        does = np.flatnonzero(begins | (matters & wants[codes] != 0))
        first = np.full(len(keys.values), len(codes))
        first[codes[does][::-1]] = does[::-1]
        found = np.flatnonzero(np.arange(len(codes)) >= first[codes])
        return found if order is None else order[found]

    def _made(self, due: list[Part], which: Numbers, keys: list[Any]) -> Events:
        """Objects of the events with these numbers, in this order."""
        is_chosen = np.zeros(sum(len(part.at) for part in due), np.bool_)
        is_chosen[which] = True
        ends = np.cumsum([len(part.at) for part in due])
        at = [
            part.at[chosen]
            for part, chosen in zip(due, np.split(is_chosen, ends[:-1]), strict=True)
        ]
        order = (np.cumsum(is_chosen) - 1)[which]  # among those that were chosen

        def listed(of_parts: list[Any]) -> list[Any]:
            values: list[Any] = np.concatenate(of_parts)[order].tolist()
            return values

        data = [_taken(part.data, some) for part, some in zip(due, at)]
        truths = [
            listed([_known(part.truths[number], some) for part, some in zip(due, at)])
            for number in range(len(self._conditions.conditions))
        ]
        is_known = all(holds is not None for part in due for holds in part.truths)
        if self._places and is_known:
            events = places_of(CandidateRows(data), order.tolist())
        else:
            rows = [row for each in data for row in rows_of_batch(each)]
            events = [rows[place] for place in order.tolist()]
        times = listed([part.times[some] for part, some in zip(due, at)])
        return Events(keys, times, events, truths)

    def _behind(
        self, times: list[int], rows: list[Any], keys: list[Any], due: list[Part]
    ) -> Events:
        """All that is due behind events of a snapshot, whose conditions are not known."""
        found = Events(keys, times, rows, [[None] * len(rows) for _ in self._conditions.conditions])
        if due:
            every = np.arange(sum(len(part.at) for part in due))
            of_columns = _keys(due, self._key)
            more = self._made(due, every, [of_columns.values[code] for code in of_columns.codes])
            found.keys += more.keys
            found.times += more.times
            found.events += more.events
            for known, others in zip(found.truths, more.truths):
                known += others
        order = sorted(range(len(found.times)), key=found.times.__getitem__)
        listed = found.keys, found.times, found.events, *found.truths
        ordered_keys, ordered_times, ordered_events, *truths = (
            [each[at] for at in order] for each in listed
        )
        return Events(ordered_keys, ordered_times, ordered_events, truths)

    # -- events on disk ----------------------------------------------------------------------------

    def relieve(self, watermark: int) -> None:
        """Events beyond their share of memory leave it."""
        disk, size = self._disk, sum(part.nbytes for part in self._parts)
        if disk is None or disk.memory is None or size <= max(disk.memory, self._stay):
            return
        starts = [part.times // WIDTH * WIDTH for part in self._parts]
        distinct, counts = np.unique(np.concatenate(starts), return_counts=True)
        sizes = (counts * size // counts.sum()).tolist()
        leaving = disk.leaving(dict(zip(distinct.tolist(), sizes)), disk.memory, watermark)
        # what came before in the form of rows stays in front of what is on disk
        leaving -= {time // WIDTH * WIDTH for time in self._restored.times}
        if leaving:
            leaves = [np.isin(each, list(leaving)) for each in starts]
            parts = list(zip(self._parts, leaves))
            for _, alike in groupby(parts, key=lambda each: each[0].data.schema):
                self._write(disk, [(part.data, part.times, which) for part, which in alike])
            self._parts = [
                self._part(_taken(part.data, np.flatnonzero(~which)), part.times[~which])
                if which.any()
                else part
                for part, which in parts
                if not which.all()
            ]
        # what cannot leave is not looked at again before there is much more of it
        self._stay = sum(part.nbytes for part in self._parts) * 3 // 2

    def _write(self, disk: EventsOnDisk, parts: list[tuple[pa.RecordBatch, Numbers, Any]]) -> None:
        """Writes those events that leave."""
        data = pa.concat_batches([_taken(each, np.flatnonzero(at)) for each, _, at in parts])
        times = np.concatenate([each[at] for _, each, at in parts])
        if len(times):
            for start, at in positions_by(times // WIDTH * WIDTH):
                disk.write_columns(start, data.take(pa.array(at)), times[at], self._key)

    def _bring_back(self, pieces: list[Piece]) -> None:
        """Has the events of a slice in memory, before those that came since."""
        streams = [from_bytes(events) for *_, events in pieces if isinstance(events, bytes)]
        are_alike = len({each.schema for each in streams}) == 1 and len(streams) == len(pieces)
        if not are_alike or len(self._restored):
            self._restored.add_before(*rows_of(pieces))
            return
        order = np.argsort(np.concatenate([numbers for numbers, *_ in pieces]))
        times = np.concatenate([times for _, times, _ in pieces])[order]
        data = pa.concat_batches(streams).take(pa.array(order))
        self._parts.insert(0, self._part(data, times))

    # -- snapshots ---------------------------------------------------------------------------------

    def freeze(
        self, keys_of_rows: Callable[[list[Any]], list[Any]]
    ) -> Callable[[Turns], dict[Any, list[tuple[int, Any]]]]:
        """What waits, as rows, which are made when it is written. Nobody changes a batch."""
        restored = self._restored.by_key(keys_of_rows)
        waiting = [(part.data, part.times) for part in self._parts]
        until, key = self._taken_until, self._key

        def saved(turns: Turns) -> dict[Any, list[tuple[int, Any]]]:
            found = restored
            for data, times in waiting:
                at = np.flatnonzero(times > until)
                part = _taken(data, at)
                for row, each, time in zip(
                    rows_of_batch(part), _key_values(part, key), times[at].tolist()
                ):
                    found.setdefault(each, []).append((time, row))
                turns.give_way()
            return found

        return saved

    def restore(self, saved: Mapping[Any, list[tuple[int, Any]]]) -> None:
        """Takes what waited when it was saved."""
        if self._disk is not None:
            self._restored.add(*rows_of(self._disk.restored))
            self._disk.restored = []
        self._restored.restore(saved)


@dataclass(frozen=True)
class Keys:
    """``codes``: for each event, the index of its key among the distinct ``values``."""

    codes: Numbers
    values: list[Any]


def _keys(due: list[Part], names: tuple[str, ...]) -> Keys:
    """The keys of the events that are due."""
    if not names:
        return Keys(np.zeros(sum(len(part.at) for part in due), np.int64), [SINGLE_KEY])
    columns = [
        pa.concat_arrays([_column(part.data, name).take(pa.array(part.at)) for part in due])
        for name in names
    ]
    found = encoded(columns)
    firsts = pa.array(found.firsts)
    batch = pa.RecordBatch.from_arrays([each.take(firsts) for each in columns], names=list(names))
    return Keys(found.codes.astype(np.int64, copy=False), _key_values(batch, names))


def _column(data: pa.RecordBatch, name: str) -> Any:
    return data.column(column_index(name, data.schema))


def _key_values(data: pa.RecordBatch, names: tuple[str, ...]) -> list[Any]:
    """The key of each row, in the form that it has for rows."""
    if not names:
        return [SINGLE_KEY] * data.num_rows
    columns = [python_values(_column(data, name)) for name in names]
    return canonical_keys(columns[0] if len(columns) == 1 else list(zip(*columns)))


def _order(due: list[Part]) -> Numbers | None:
    """The numbers of the events in the order of their time, those of equal time as they came; None
    if they are in order."""
    times = np.concatenate([part.times[part.at] for part in due])
    if bool((times[1:] >= times[:-1]).all()):
        return None
    return np.argsort(times, kind="stable")


def _some_at_once(due: list[Part]) -> Iterator[list[Part]]:
    """The events in the order of their time, some thousands at once, as what is made of them is
    used while it is near; events of equal time are not parted."""
    total = sum(len(part.at) for part in due)
    if total <= _AT_ONCE:
        if total:
            yield due
        return
    order = _order(due)
    times = np.concatenate([part.times[part.at] for part in due])
    if order is not None:
        times = times[order]
    begins = np.cumsum([0, *(len(part.at) for part in due)])
    start = 0
    while start < total:
        last = times[min(start + _AT_ONCE, total) - 1]
        end = int(np.searchsorted(times, last, side="right"))
        some = np.arange(start, end) if order is None else np.sort(order[start:end])
        bounds = np.searchsorted(some, begins)
        yield [
            part.with_events(some[low:high] - begin)
            for part, begin, low, high in zip(due, begins, bounds, bounds[1:])
            if high > low
        ]
        start = end


def _known(holds: Marks | None, at: Numbers) -> Any:
    """Whether a condition holds for these events, as an array; of None if that is not known."""
    return np.full(len(at), None) if holds is None else holds[at]


def _taken(data: pa.RecordBatch, at: Numbers) -> pa.RecordBatch:
    """The rows at these places, in their order; without a copy if they are all."""
    if len(at) == data.num_rows or not data.num_columns:  # Arrow takes no rows without columns
        return data.slice(0, len(at))
    return data.take(pa.array(at))
