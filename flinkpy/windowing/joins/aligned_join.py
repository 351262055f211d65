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
from collections.abc import Iterator
from itertools import compress, repeat
from operator import length_hint
from typing import Any, ClassVar
from weakref import ref

from flinkpy.core.elements import MIN_TIMESTAMP, Batch, RowBatch, Watermark
from flinkpy.core.keys import canonical_keys
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
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Moment, emit_results
from flinkpy.windowing.assigners import no_timestamp
from flinkpy.windowing.joins.aligned_windows import AlignedWindows
from flinkpy.windowing.joins.frozen_slices import FiredUntil, FrozenSlices
from flinkpy.windowing.joins.join_loops import Part, add_by_key
from flinkpy.windowing.slicing import slicing_of
from flinkpy.windowing.windows import TimeWindow

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


class AlignedJoinOperator(DropsLateRecords, KeyedStateOperator, TwoInputOperator):
    """``assigner`` assigns tumbling or sliding event-time windows; ``allowed_lateness`` is in
    milliseconds. ``joins``: records whose key is null find no partner, and are not kept."""

    batch_form = BatchForm.AT_END_OF_TIME
    takes_no_policy = "pairs records: catch the exception in the function"
    parks = True
    joins: ClassVar[bool]
    _call: Any  # the user's function, as a callable

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
        # Restored: window start -> key -> whether the window had ended
        self._fired_before: dict[int, dict[Any, bool]] = {}
        # restored: up to which moment the windows of the key had fired
        self._ahead: dict[Any, int] = {}
        # the starts of its windows that got records since, and fire again
        self._again: dict[Any, tuple[int, ...]] = {}
        self._frozen_before: list[ref[FrozenSlices]] = []
        self._copies = False
        self._restore()

    def close(self) -> None:
        try:
            close_function(self.function)
        finally:
            super().close()
            close_selectors(self.keys)

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
        return sum(len(keys) for held in self._slices.values() for keys, _ in held.parts)

    def _frozen(self) -> FrozenSlices:
        """As state of the keys, so that it moves with their key groups."""
        fired = FiredUntil(
            self._windows.watermark, self._ahead, dict(self._again), self._windows.slicing.size
        )
        frozen = FrozenSlices(
            {start: held.parts for start, held in self._slices.items()},
            fired,
            self.raise_unhashable,
        )
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
        """Windows that were complete before are not fired again for the keys that were there:
        ``_fired_before`` has these. It is kept per key because after a change of parallelism each
        key may come from another watermark. The next checkpoint may come before the watermark has
        caught up."""
        saved = self.backend.register_region(CONTENTS, self._frozen)
        self._ahead = {key: until for key, (until, *_) in saved.items()}
        self._caught_up = max(self._ahead.values(), default=MIN_TIMESTAMP)
        for key, (until, contents, *again) in saved.items():
            if again:
                self._again[key] = again[0]
            for start, sides in contents.items():
                slice_ = self._slice(start)
                for side, values in enumerate(sides):
                    slice_.add(side, [key] * len(values), values)
                    self.note_mutable(values)
                for window in self._windows.slicing.windows_of(start):
                    if window.max_timestamp() <= until and window.start not in self._again.get(
                        key, ()
                    ):
                        self._fired_before.setdefault(window.start, {})[key] = (
                            self._windows.cleanup_time(window.end) <= until
                        )

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
        slicing = self._windows.slicing
        start = slicing.slice_of(earliest)
        if self._fired_before or self._windows.is_complete(earliest):
            return self._add_late(side, keys, values, stamps)
        if max(stamps) < start + slicing.width:
            if slicing.last_window_end(start) is not None:
                self._slice(start).add(side, keys, values)
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
                self._slice(start).add(side, *part)

    def _add_late(self, side: int, keys: list[Any], values: list[Any], stamps: list[int]) -> Work:
        """Stores a batch with records of complete windows: fires these windows again for the
        record's key, or drops the record."""
        aligned = self._windows
        for key, value, stamp in zip(keys, values, stamps):
            windows = aligned.open_for(stamp)
            if not windows:
                self.drop_late(int(aligned.is_late(stamp)))
                continue
            self._slice(aligned.slicing.slice_of(stamp)).add(side, [key], [value])
            for window in windows:
                fired_before = self._fired_before.get(window.start)
                if fired_before is not None and fired_before.get(key) is False:
                    del fired_before[key]
                    self._again[key] = (*self._again.get(key, ()), window.start)
                if window.max_timestamp() <= aligned.watermark:
                    yield from self._fire(
                        window,
                        lambda side, slice_, key=key: (
                            ([key] * len(found), found)
                            if (found := slice_.of_key(side, key))
                            else None
                        ),
                    )

    # -- windows -----------------------------------------------------------------------------------

    def process_watermark(self, watermark: Watermark) -> Work:
        for window in self._windows.advance(watermark.timestamp):
            fired_before = self._fired_before.pop(window.start, None)
            yield from self._fire(
                window,
                lambda side, slice_, fired_before=fired_before: _without_keys(
                    slice_.parts[side], fired_before
                ),
            )
        for start in self._windows.ended_slices():
            self._slices.pop(start, None)
        if self._ahead and watermark.timestamp >= self._caught_up:
            self._ahead, self._again = {}, {}
        super().process_watermark(watermark)

    def _fire(self, window: TimeWindow, part: Any) -> Work:
        """Joins the window. ``part(side, slice)`` returns the records of a slice that take part, or
        None."""
        slices = [
            self._slices[start]
            for start in self._windows.slicing.slices_in(window)
            if start in self._slices
        ]
        try:
            first, second = (
                [found for slice_ in slices if (found := part(side, slice_)) is not None]
                for side in (0, 1)
            )
            if first or second:
                yield from self.combine(first, second, window.max_timestamp())
        except TypeError as error:
            self.raise_unhashable([part for slice_ in slices for part in slice_.parts], error)
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


def _without_keys(part: Part, keys: dict[Any, bool] | None) -> Part | None:
    """The part without these keys; None if nothing is left."""
    if keys:
        pairs = [(key, value) for key, value in zip(*part) if key not in keys]
        part = [key for key, _ in pairs], [value for _, value in pairs]
    return part if part[0] else None
