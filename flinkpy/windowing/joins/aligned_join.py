"""What window joins and co-groups over aligned windows share. Records are only stored as they come,
and joined when their window is complete.

Each slice and side has two lists, of keys and of records, so storing a batch takes two calls of
``extend``. A complete window is joined as a hash join, so keys without partners cost nothing
before. There are no timers: windows become complete for all keys at once.

Other windows, and joins with triggers or evictors, use the general form: the window operator over
the union of both streams (``tagged_union``). A property test compares the two forms. In windows of
several slices, the records of a key are in order of slice, and within a slice in order of arrival.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import compress, repeat
from operator import length_hint
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import ref

from flinkpy.core.elements import MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.keys import canonical_keys
from flinkpy.core.memory import SizeEstimator
from flinkpy.core.mutability import could_be_mutated
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import BatchForm, TwoInputOperator, Work
from flinkpy.operators.event_time.late_records import DropsLateRecords
from flinkpy.operators.functions import close_function, open_function
from flinkpy.operators.key_selectors import close_selectors, open_selectors
from flinkpy.operators.keyed_state import KeyedStateOperator
from flinkpy.operators.process.join_functions import joining
from flinkpy.operators.row_batches import rows
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.spilling.spilled_slices import SpilledSlices
from flinkpy.operators.spilling.spills_in_batch import SpillsInBatch
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Moment, emit_results
from flinkpy.state.heap.sampled_sizes import bytes_of_parts
from flinkpy.state.slice_log import RestoredLog, restored_log
from flinkpy.windowing.assigners import no_timestamp
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.fired_before import FiredBefore
from flinkpy.windowing.joins.frozen_slices import FrozenSlices, Held, Saved
from flinkpy.windowing.joins.join_loops import Part, add_by_key
from flinkpy.windowing.joins.slices_on_disk import Sides, SlicesOnDisk
from flinkpy.windowing.joins.spilled_sides import SidesForm
from flinkpy.windowing.slicing import slicing_of
from flinkpy.windowing.windows import TimeWindow

if TYPE_CHECKING:
    from flinkpy.operators.spilling.operator_memory import OperatorMemory

CONTENTS = "_window join contents"  # the name of the state


class JoinSlice:
    """The records of one slice, of both sides: in order of arrival, and by key once a single key
    was asked for."""

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

    def of_key(self, side: int, key: object) -> list[Any]:
        """The records of one key. The first call indexes all records of the side."""
        index = self._by_key[side]
        if index is None:
            index = self._by_key[side] = add_by_key({}, *self.parts[side])
        return index.get(key, [])


class AlignedJoinOperator(DropsLateRecords, SpillsInBatch, KeyedStateOperator, TwoInputOperator):
    """``assigner`` assigns tumbling or sliding event-time windows; ``allowed_lateness`` is in
    milliseconds. ``joins``: records whose key is null find no partner, and are not kept."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_no_policy = "pairs records: catch the exception in the function"
    parks = True
    joins: ClassVar[bool]
    _call: Any  # the user's function, as a callable
    _spilled: SpilledSlices[Sides] | None = None  # in a batch job

    def __init__(
        self, function: Any, key1: KeySpec, key2: KeySpec, assigner: Any, allowed_lateness: int = 0
    ) -> None:
        for key in (key1, key2):
            key_function(key)
        self.function = function
        self.keys = (key1, key2)
        self.assigner = assigner
        self.allowed_lateness = allowed_lateness

    @abstractmethod
    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        """Emits the results for a window's records, with this timestamp."""

    # -- life --------------------------------------------------------------------------------------

    def open(self) -> None:
        open_selectors(self.keys, self.context)
        open_function(self.function, self.context, self.backend)
        self._selects = tuple(key_function(key) for key in self.keys)
        slicing = slicing_of(self.assigner)
        assert slicing is not None, "made for aligned windows only"
        self._windows = AlignedWindows(slicing, self.allowed_lateness)
        self._slices: dict[int, JoinSlice] = {}
        self._fired_before = FiredBefore(self._windows, self.context.task.max_parallelism)
        self._frozen_before: list[ref[FrozenSlices]] = []
        self._copies = False
        self._restore()

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys)

    def spill_to(self, memory: OperatorMemory) -> None:
        self._form = SidesForm()
        self._spilled = SpilledSlices(self._form, memory)

    def free_memory(self) -> None:
        if self._spilled is not None:
            self._spilled.spill(self._taken, 0)

    def _taken(self, start: int) -> Iterator[Sides]:
        """Gives the records of a slice away."""
        taken, self._slices[start] = self._slices[start], JoinSlice()
        return self._form.cut(*taken.parts)

    def note_mutable(self, values: list[Any]) -> None:
        """Has the function get copies, from the first records on that could be changed in place, of
        records that are in other pairs or windows too."""
        if not self._copies and not self.context.object_reuse and could_be_mutated(values):
            self._copies = True
            self.begin_to_copy()

    def begin_to_copy(self) -> None:
        """Called when ``_copies`` has just become true."""

    def _slice(self, start: int) -> JoinSlice:
        found = self._slices.get(start)
        if found is None:
            found = self._slices[start] = JoinSlice()
            self._windows.open_slice(start)
        return found

    # -- snapshots ---------------------------------------------------------------------------------

    def entries_held(self) -> int:
        return sum(
            len(keys) - begin
            for _, sides, begins in self._held()
            for (keys, _), begin in zip(sides, begins)
        )

    def bytes_held(self) -> int:
        sides = [values for _, sides, _ in self._held() for _, values in sides]
        return bytes_of_parts(
            sides, len, lambda values: int(SizeEstimator().bytes_of_rows(values)) if values else 0
        )

    def _held(self) -> Iterator[Held]:
        """The records that are not on disk."""
        if self._disk is not None:
            for start, leaving in self._disk.leaving.items():
                yield start, leaving.parts, (leaving.begins[0], leaving.begins[1])
        for start, slice_ in self._slices.items():
            yield start, slice_.parts, (0, 0)

    def _frozen(self) -> FrozenSlices:
        """As state of the keys, so that it moves with their key groups."""
        frozen = FrozenSlices(self._held(), self._fired_before.frozen(), self.raise_unhashable)
        self._frozen_before = [each for each in self._frozen_before if each() is not None] + [
            ref(frozen)
        ]
        return frozen

    @property
    def is_being_written(self) -> bool:
        """Whether records must stay as they are, also those that are not needed any more."""
        return any(
            (frozen := each()) is not None and not frozen.is_read for each in self._frozen_before
        )

    def _restore(self) -> None:
        """Windows that were complete before are not fired again for the keys that were there. It is
        known per key because after a change of parallelism each key may come from another
        watermark. The next checkpoint may come before the watermark has caught up."""
        saved = self.backend.register_region(CONTENTS, self._frozen)
        most = self.context.task.max_parallelism
        found = restored_log(
            self.backend,
            CONTENTS,
            lambda group: _key_of_group(group, most),
            self._fired_before.frozen_groups,
        )
        self._disk = None if found.log is None else SlicesOnDisk(found.log, most)
        if found.log is not None:
            self._fired_before.groups(found.notes)
            for start in found.log.starts:
                self._slice(start)
        else:
            saved = together(saved, found)
        for key, (until, contents, *again) in saved.items():
            self._fired_before.key(key, until, contents, again[0] if again else ())
            for start, sides in contents.items():
                for side, values in enumerate(sides):
                    self._slice(start).add(side, [key] * len(values), values)
                    self.note_mutable(values)

    # -- records -----------------------------------------------------------------------------------

    def process_batch1(self, batch: Batch) -> Work | None:
        return self._add_batch(rows(batch), 0)

    def process_batch2(self, batch: Batch) -> Work | None:
        return self._add_batch(rows(batch), 1)

    def _add_batch(self, batch: RowBatch, side: int) -> Work | None:
        values, stamps = batch.values, batch.timestamps
        if stamps is None or (earliest := min(stamps)) == MIN_TIMESTAMP:
            raise no_timestamp(self.assigner)
        select, upcoming = self._selects[side], iter(values)
        try:
            keys: list[Any] = [select(value) for value in upcoming]
        except BaseException as error:  # the iterator knows how far it got
            raise user_code_error(
                error, self.context, values[len(values) - length_hint(upcoming) - 1]
            ) from error
        keys = canonical_keys(keys)
        if self.joins and (found := joining(keys)) is not None:
            keys, values, stamps = (list(compress(each, found)) for each in (keys, values, stamps))
            if not keys:
                return None
            earliest = min(stamps)
        self.note_mutable(values)
        if self._disk is not None and not self._fired_before.is_catching_up:
            self._disk.after_batch(len(keys), self._slices, JoinSlice)
        slicing = self._windows.slicing
        start = slicing.slice_of(earliest)
        if self._fired_before.holds_windows or self._windows.is_complete(earliest):
            return self._add_late(side, keys, values, stamps)
        if max(stamps) < start + slicing.width:
            if slicing.last_window_end(start) is not None:
                self._put(start, side, keys, values)
        else:
            self._add_scattered(side, keys, values, stamps)
        return None

    def _add_scattered(
        self, side: int, keys: list[Any], values: list[Any], stamps: list[int]
    ) -> None:
        """Stores a batch that spans several slices."""
        offset, width = self._windows.slicing.offset, self._windows.slicing.width
        parts: dict[int, Part] = {}
        for key, value, stamp in zip(keys, values, stamps):
            start = stamp - (stamp - offset) % width
            part = parts.get(start)
            if part is None:
                part = parts[start] = ([], [])
            part[0].append(key)
            part[1].append(value)
        for start, part in parts.items():
            if self._windows.slicing.last_window_end(start) is not None:
                self._put(start, side, *part)

    def _put(self, start: int, side: int, keys: list[Any], values: list[Any]) -> None:
        self._slice(start).add(side, keys, values)
        if self._spilled is not None:
            self._spilled.note(start, ((keys, values), ([], [])))
            self._spilled.spill(self._taken)

    def _add_late(self, side: int, keys: list[Any], values: list[Any], stamps: list[int]) -> Work:
        """Stores a batch with records of complete windows: fires these windows again for the
        record's key, or drops the record."""
        aligned = self._windows
        for key, value, stamp in zip(keys, values, stamps):
            windows = aligned.open_for(stamp)
            if not windows:
                self.drop_late(int(aligned.is_late(stamp)))
                continue
            for window in windows:
                self._fired_before.gets_record(window, key, partial(self._has_on_disk, window, key))
            self._slice(aligned.slicing.slice_of(stamp)).add(side, [key], [value])
            for window in windows:
                if window.max_timestamp() <= aligned.watermark:
                    yield from self._fire(window, self._of_key(window, key))

    # -- windows -----------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        for window in self._windows.advance(watermark.timestamp):
            fired_before = self._fired_before.take(window)
            for parts in self._of_window(window, fired_before):
                yield from self._fire(window, parts)
        for start in self._windows.ended_slices():
            self._slices.pop(start, None)
            if self._disk is not None:
                self._disk.forget(start)
        self._fired_before.advanced(watermark.timestamp)
        super().process_watermark(watermark)

    def _starts_in(self, window: TimeWindow) -> list[int]:
        return [start for start in self._windows.slicing.slices_in(window) if start in self._slices]

    def _of_window(
        self, window: TimeWindow, fired_before: dict[Any, bool]
    ) -> Iterator[list[Sides]]:
        """The records that the window is to fire for; with some on disk, those of one key group at
        a time."""
        starts, disk = self._starts_in(window), self._disk
        if self._spilled is not None:
            held = {start: [self._slices[start].parts] for start in starts}
            yield from self._spilled.portions(starts, held)
            return
        if disk is None or not disk.are_here(starts):
            parts = [self._slices[start].parts for start in starts]
            yield only(parts, lambda key: key not in fired_before) if fired_before else parts
            return
        for group, found in disk.of_groups(starts, self._slices):
            wanted, parts = self._fired_before.on_disk(window, group), []
            for was_written, sides in found:
                if was_written:
                    self._note_sides(sides)
                    parts += [sides] if wanted is None else only([sides], wanted)
                elif fired_before:
                    parts += only([sides], lambda key: key not in fired_before)
                else:
                    parts.append(sides)
            yield parts

    def _of_key(self, window: TimeWindow, key: Any) -> list[Sides]:
        """The records of one key in a window."""
        parts: list[Sides] = []
        for start in self._starts_in(window):
            if self._disk is not None and self._disk.are_here([start]):
                parts.append(self._disk.of_key(start, key))
                self._note_sides(parts[-1])
            first, second = (self._slices[start].of_key(side, key) for side in (0, 1))
            parts.append((([key] * len(first), first), ([key] * len(second), second)))
        return parts

    def _has_on_disk(self, window: TimeWindow, key: Any) -> bool:
        disk = self._disk
        return disk is not None and any(
            keys
            for start in self._starts_in(window)
            if disk.are_here([start])
            for keys, _ in disk.of_key(start, key)
        )

    def _note_sides(self, sides: Sides) -> None:
        for _, values in sides:
            self.note_mutable(values)

    def _fire(self, window: TimeWindow, parts: list[Sides]) -> Work:
        """Joins records of the window."""
        try:
            first, second = (
                [part for sides in parts if (part := sides[side])[0]] for side in (0, 1)
            )
            if first or second:
                yield from self.combine(first, second, window.max_timestamp())
        except TypeError as error:
            self.raise_unhashable([part for sides in parts for part in sides], error)
            raise

    def raise_unhashable(self, parts: list[Part], error: TypeError) -> None:
        """Raises an error that names the record if a key cannot be hashed. Keys are checked only
        here, because records are stored by the batch."""
        for keys, values in parts:
            for key, value in zip(keys, values):
                try:
                    hash(key)
                except TypeError as unhashable:
                    raise user_code_error(unhashable, self.context, value) from error

    def emit_groups(self, groups: Iterator[tuple[Any, Any]], timestamp: int) -> Work:
        """Emits the results, any number, that the function makes of each two records or each two
        groups of records."""
        call = self._call
        return emit_results(
            lambda both, at: call(*both), groups, repeat(timestamp), Moment(), self, endless=True
        )


def _key_of_group(group: int, max_parallelism: int) -> int:
    from flinkpy.operators.columnar.tables_by_group import key_of_group  # imports Arrow

    return key_of_group(group, max_parallelism)


def only(parts: list[Sides], is_wanted: Callable[[Any], bool]) -> list[Sides]:
    """The records with these keys."""
    return [(_only(first, is_wanted), _only(second, is_wanted)) for first, second in parts]


def _only(part: Part, is_wanted: Callable[[Any], bool]) -> Part:
    pairs = [(key, value) for key, value in zip(*part) if is_wanted(key)]
    return [key for key, _ in pairs], [value for _, value in pairs]


def together(saved: Mapping[Any, Saved], found: RestoredLog) -> dict[Any, Saved]:
    """What was saved of each key, with what lay on disk in another backend in front."""
    by_key: dict[Any, Any] = {}
    for group, pieces in found.pieces.items():
        until, again = found.notes[group]
        for start, sides in pieces:
            for side, (keys, values) in enumerate(sides):
                for key, value in zip(keys, values):
                    _, contents, _ = by_key.setdefault(key, (until, {}, again.get(key, ())))
                    contents.setdefault(start, ([], []))[side].append(value)
    for key, (until, contents, *more) in saved.items():
        before = by_key.get(key, (until, {}, ()))
        for start, sides in contents.items():
            for of_side, values in zip(before[1].setdefault(start, ([], [])), sides):
                of_side.extend(values)
        again = tuple(dict.fromkeys((*before[2], *(more[0] if more else ()))))
        by_key[key] = max(until, before[0]), before[1], again
    return by_key
