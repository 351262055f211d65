"""Window joins and co-groups over windows that lie on a grid: records are only put away as they come, and joined as their window is complete.

Per slice and side there are two lists, of keys and of records, so that a batch is taken in by two ``extend``; a complete window is joined as a hash
join, by which nothing was paid before for keys without partners. No timers: windows are complete for all keys at once. The general form, for other
windows, triggers and evictors, is the window operator over both streams in one; a property test holds the two against each other. In windows of
several slices the records of a key stand slice by slice, and within a slice as they came.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import compress, repeat
from typing import Any, ClassVar

from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.core.codegen.inlining import inlined, raised_by
from flinkpy.core.elements import MIN_TIMESTAMP, Batch, CheckpointBarrier, RowBatch, Watermark
from flinkpy.core.keys import canonical_keys
from flinkpy.core.mutability import could_be_mutated, isolated, private_copy
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import TwoInputOperator, Work
from flinkpy.operators.chain.output_isolation import with_private_results
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import Function, close_function, method_of, open_function
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.join_functions import joining
from flinkpy.operators.process.yielding import Moment, Results, give_out
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.rows.stateless import rows
from flinkpy.operators.user_errors import user_code_error
from flinkpy.windowing.assigners import no_timestamp
from flinkpy.windowing.joins.aligned_windows import WindowGrid
from flinkpy.windowing.joins.join_loops import JoinLoop, Part, add_by_key, by_key, index_of, join_loop, narrowed, portions
from flinkpy.windowing.slices.slicing import slicing_of
from flinkpy.windowing.windows import TimeWindow

CONTENTS = "_window join contents"  # the name of the state
_MISSING = object()


class Slice:
    """The records of one slice, of both sides: as they came, and by key where somebody asked."""

    __slots__ = ("_by_key", "parts")

    def __init__(self) -> None:
        self.parts: tuple[Part, Part] = (([], []), ([], []))
        self._by_key: list[dict[Any, list[Any]] | None] = [None, None]

    def add(self, side: int, keys: list[Any], values: list[Any]) -> None:
        known = self.parts[side]
        known[0].extend(keys)
        known[1].extend(values)
        index = self._by_key[side]
        if index is not None:
            add_by_key(index, keys, values)

    def of_key(self, side: int, key: Any) -> list[Any]:
        """The records of one key. Indexes all, the first time."""
        index = self._by_key[side]
        if index is None:
            index = self._by_key[side] = add_by_key({}, *self.parts[side])
        return index.get(key, [])


class GridJoinOperator(DropsLateRecords, KeyedStateOperator, TwoInputOperator):
    """What joins and co-groups share: ``assigner`` gives tumbling or sliding windows of event time; ``allowed_lateness`` in milliseconds.
    ``joins``: records whose key has no value have no partner, and are not kept."""

    parks = True
    joins: ClassVar[bool]
    _call: Any  # the user's method

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec, assigner: Any, allowed_lateness: int = 0) -> None:
        for key in (key1, key2):
            key_function(key)
        self.function, self.keys, self.assigner, self.allowed_lateness = function, (key1, key2), assigner, allowed_lateness

    @abstractmethod
    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        """Emits what becomes of a window's records, with this timestamp."""

    # -- life ---------------------------------------------------------------------------------------------------------------

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        open_function(self.function, self.context, self.backend)
        self._selects = tuple(key_function(key) for key in self.keys)
        slicing = slicing_of(self.assigner)
        assert slicing is not None, "made for windows on a grid only"
        self._grid = WindowGrid(slicing, self.allowed_lateness)
        self._slices: dict[int, Slice] = {}
        self._settled: dict[int, dict[Any, bool]] = {}
        self._copies = False
        self._restore()

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys)

    def look_at(self, values: list[Any]) -> None:
        """From the first records on that could be changed in place, the function gets copies of those that are in other pairs or windows too."""
        if not self._copies and not self.context.object_reuse and could_be_mutated(values):
            self._copies = True
            self.begin_to_copy()

    def begin_to_copy(self) -> None:
        """``_copies`` is true now."""

    def _slice(self, start: int) -> Slice:
        found = self._slices.get(start)
        if found is None:
            found = self._slices[start] = Slice()
            self._grid.open_slice(start)
        return found

    # -- snapshots ----------------------------------------------------------------------------------------------------------

    def snapshot_state(self, barrier: CheckpointBarrier) -> bytes | None:
        """As state of the keys, so that it moves with their groups: the watermark, and per slice the records of both sides."""
        saved = self.backend.engine_values(CONTENTS)
        by_slice: dict[Any, dict[int, Part]] = {}
        for start, slice_ in self._slices.items():
            for side, (keys, values) in enumerate(slice_.parts):
                try:
                    for key, value in zip(keys, values):
                        by_slice.setdefault(key, {}).setdefault(start, ([], []))[side].append(value)
                except TypeError as error:
                    self._blame([(keys, values)], error)
                    raise
        saved.update((key, (self._grid.watermark, contents)) for key, contents in by_slice.items())
        try:
            return super().snapshot_state(barrier)
        finally:
            saved.clear()

    def _restore(self) -> None:
        """Windows that were complete before are not fired again for the keys that were there: ``_settled`` has these keys by window, and whether
        the window had gone altogether. Kept per key, as after a change of parallelism each key may come from another watermark."""
        saved = self.backend.engine_values(CONTENTS)
        for key, (watermark, contents) in saved.items():
            for start, sides in contents.items():
                slice_ = self._slice(start)
                for side, values in enumerate(sides):
                    slice_.add(side, [key] * len(values), values)
                    self.look_at(values)
                for window in self._grid.slicing.windows_of(start):
                    if window.max_timestamp() <= watermark:
                        self._settled.setdefault(window.start, {})[key] = self._grid.cleanup_time(window.end) <= watermark
        saved.clear()

    # -- records ------------------------------------------------------------------------------------------------------------

    def process_batch1(self, batch: Batch) -> Work | None:
        return self._take(rows(batch), 0)

    def process_batch2(self, batch: Batch) -> Work | None:
        return self._take(rows(batch), 1)

    def _take(self, batch: RowBatch, side: int) -> Work | None:
        values, stamps = batch.values, batch.timestamps
        if stamps is None or (earliest := min(stamps)) == MIN_TIMESTAMP:
            raise no_timestamp(self.assigner)
        keys: list[Any] = []
        try:
            keys.extend(map(self._selects[side], values))
        except Exception as error:  # the list knows how far it got
            raise user_code_error(error, self.context, values[len(keys)]) from error
        keys = canonical_keys(keys)
        if self.joins and (found := joining(keys)) is not None:
            keys, values, stamps = (list(compress(each, found)) for each in (keys, values, stamps))
            if not keys:
                return None
            earliest = min(stamps)
        self.look_at(values)
        slicing = self._grid.slicing
        start = slicing.slice_of(earliest)
        if self._settled or self._grid.is_complete(earliest):
            return self._take_late(side, keys, values, stamps)
        if max(stamps) < start + slicing.width:
            if slicing.last_window_end(start) is not None:
                self._slice(start).add(side, keys, values)
        else:
            self._take_apart(side, keys, values, stamps)
        return None

    def _take_apart(self, side: int, keys: list[Any], values: list[Any], stamps: list[int]) -> None:
        """A batch over several slices."""
        offset, width = self._grid.slicing.offset, self._grid.slicing.width
        parts: dict[int, Part] = {}
        for key, value, stamp in zip(keys, values, stamps):
            start = stamp - (stamp - offset) % width
            part = parts.get(start)
            if part is None:
                part = parts[start] = ([], [])
            part[0].append(key)
            part[1].append(value)
        for start, part in parts.items():
            if self._grid.slicing.last_window_end(start) is not None:
                self._slice(start).add(side, *part)

    def _take_late(self, side: int, keys: list[Any], values: list[Any], stamps: list[int]) -> Work:
        """A batch with records of complete windows: these windows are fired again, for the record's key, or the record is dropped."""
        grid = self._grid
        for key, value, stamp in zip(keys, values, stamps):
            windows = grid.open_windows(stamp)
            if not windows:
                self.drop_late(int(grid.is_late(stamp)))
                continue
            self._slice(grid.slicing.slice_of(stamp)).add(side, [key], [value])
            for window in windows:
                settled = self._settled.get(window.start)
                if settled is not None and settled.get(key) is False:
                    del settled[key]
                if window.max_timestamp() <= grid.watermark:
                    yield from self._fire(
                        window, lambda side, slice_, key=key: ([key] * len(found), found) if (found := slice_.of_key(side, key)) else None)

    # -- windows ------------------------------------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        for window in self._grid.advance(watermark.timestamp):
            settled = self._settled.pop(window.start, None)
            yield from self._fire(window, lambda side, slice_, settled=settled: unsettled(slice_.parts[side], settled))
        for start in self._grid.expired():
            self._slices.pop(start, None)
        super().process_watermark(watermark)

    def _fire(self, window: TimeWindow, part: Any) -> Work:
        """``part(side, slice)``: what of a slice takes part, or None."""
        slices = [self._slices[start] for start in self._grid.slicing.slices_in(window) if start in self._slices]
        try:
            first, second = ([found for slice_ in slices if (found := part(side, slice_)) is not None] for side in (0, 1))
            if first or second:
                yield from self.combine(first, second, window.max_timestamp())
        except TypeError as error:
            self._blame([part for slice_ in slices for part in slice_.parts], error)
            raise

    def _blame(self, parts: list[Part], error: TypeError) -> None:
        """Looks for a key that cannot be hashed, and says whose it is: only now, as records are put away by the batch."""
        for keys, values in parts:
            for key, value in zip(keys, values):
                try:
                    hash(key)
                except TypeError as unhashable:
                    raise user_code_error(unhashable, self.context, value) from error

    def give_groups(self, groups: Iterator[tuple[Any, Any]], timestamp: int) -> Work:
        """Emits what the function, which gives any number of results, makes of each two records, or two groups of them."""
        call = self._call
        return give_out(lambda both, at: call(*both), groups, repeat(timestamp), Moment(), self, endless=True)


def unsettled(part: Part, settled: dict[Any, bool] | None) -> Part | None:
    """Without the keys whose window was fired before a restore; None where nothing is left."""
    if settled:
        pairs = [(key, value) for key, value in zip(*part) if key not in settled]
        part = [key for key, _ in pairs], [value for _, value in pairs]
    return part if part[0] else None


def _copied(values: list[Any]) -> list[Any]:
    return list(map(private_copy, values))


class WindowJoinOperator(GridJoinOperator):
    """Each pair of a key and window: a JoinFunction makes one record of it, with ``flat`` any number."""

    joins = True

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec, assigner: Any, allowed_lateness: int = 0, *, flat: bool = False) -> None:
        super().__init__(function, key1, key2, assigner, allowed_lateness)
        method_of(function, "join")
        self.flat = flat

    def open(self) -> None:
        self._loops: dict[bool, JoinLoop] = {}
        super().open()
        self._make_loops()

    def begin_to_copy(self) -> None:
        self._make_loops()

    def _make_loops(self) -> None:
        self._forget_loops()
        join = method_of(self.function, "join")
        if not self.flat and not self.context.object_reuse and inlined(join, "one", "other") is None:
            join = with_private_results(join)
        self._call = join = isolated(join) if self._copies else join
        self._loops = {} if self.flat else {
            unique: join_loop(join, unique=unique, set_key=isinstance(self.function, Function)) for unique in (True, False)}

    def _forget_loops(self) -> None:
        for loop in getattr(self, "_loops", {}).values():
            forget_source(loop)

    def close(self) -> None:
        self._forget_loops()
        super().close()

    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        if not first or not second:
            return
        index, unique = index_of(narrowed(second, first))
        if self.flat:
            yield from self.give_groups(self._pairs(first, index, unique), timestamp)
            return
        loop, limit = self._loops[unique], self.context.batch_records
        given = loop(portions(first, limit), index.get, _MISSING, self._call, self.backend.current, limit)
        while True:
            try:
                values = next(given, None)
            except Exception as error:
                raise self._explained(loop, first, error) from error
            if values is None:
                return
            results = Results(True)
            results.values, results.stamps = values, [timestamp] * len(values)
            results.emit(self.output)
            if len(values) >= limit:
                yield

    def _pairs(self, first: list[Part], index: dict[Any, Any], unique: bool) -> Iterator[tuple[Any, Any]]:
        current = self.backend.current
        for keys, ones in first:
            for key, one in zip(keys, ones):
                found = index.get(key, _MISSING)
                if found is not _MISSING:
                    current.key = key
                    for other in (found,) if unique else found:
                        yield one, other

    def _explained(self, loop: JoinLoop, first: list[Part], error: Exception) -> Exception:
        if isinstance(error, TypeError):
            self._blame(first, error)
        failure = failure_in(loop, error.__traceback__)
        if failure is None and isinstance(error.__cause__, StopIteration):  # Python makes a RuntimeError of what leaves a generator
            error = error.__cause__
            failure = failure_in(loop, error.__traceback__)
        if failure is None:
            return user_code_error(error, self.context)
        pair = failure.variables.get("one"), failure.variables.get("other")
        return user_code_error(raised_by(self._call, pair, error), self.context, pair)


class WindowCoGroupOperator(GridJoinOperator):
    """All records of a key and window at once, of either side or both."""

    joins = False

    def __init__(self, function: Any, key1: KeySpec, key2: KeySpec, assigner: Any, allowed_lateness: int = 0) -> None:
        super().__init__(function, key1, key2, assigner, allowed_lateness)
        method_of(function, "co_group")

    def open(self) -> None:
        super().open()
        self._call = method_of(self.function, "co_group")

    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        return self.give_groups(self._groups(by_key(first), by_key(second)), timestamp)

    def _groups(self, firsts: dict[Any, list[Any]], seconds: dict[Any, list[Any]]) -> Iterator[tuple[list[Any], list[Any]]]:
        current, slicing = self.backend.current, self._grid.slicing
        shared = self._copies and (slicing.size > slicing.slide or self.allowed_lateness > 0)  # in other windows too, or in this one again
        for key in {**firsts, **seconds}:
            current.key = key
            group = firsts.get(key, []), seconds.get(key, [])
            yield (_copied(group[0]), _copied(group[1])) if shared else group
