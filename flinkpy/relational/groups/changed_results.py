"""From results before and after a batch to rows with kinds: what has changed of each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.common.types import RowKind
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.relational_operator import plain

_INSERT, _BEFORE, _AFTER, _DELETE = (
    np.int8(kind.value)
    for kind in (RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE)
)


class ChangedResults:
    """Which keys of a batch had a result before (``was``), and have one now (``is_now``).
    ``sends_before``: an update is sent as the row before and the row after."""

    def __init__(
        self, was: npt.NDArray[np.bool_], is_now: npt.NDArray[np.bool_], *, sends_before: bool
    ) -> None:
        self._was = was
        self._is_now = is_now
        self._sends_before = sends_before

    def rows(
        self,
        keys: Sequence[pa.Array],
        before: Sequence[pa.Array],
        after: Sequence[pa.Array],
        schema: pa.Schema,
        *,
        leaves_out_equal: bool,
    ) -> ColumnBatch | None:
        """The rows to send: the key's columns, then those of its result. The row before an update
        stands in front of the row after it. Updates to what was there before are left out if
        ``leaves_out_equal``."""
        if not self._was.any():
            return self._inserts(keys, after, schema)
        size = len(self._was)
        is_update = self._was & self._is_now
        if leaves_out_equal and is_update.any():
            is_update &= changed_rows(before, after, size)
        is_delete = self._was & ~self._is_now
        gives_before = is_delete | is_update if self._sends_before else is_delete
        gives_after = is_update | (self._is_now & ~self._was)
        # of the rows before and after each key in turn, those that are sent
        sent = np.stack([gives_before, gives_after], axis=1).ravel()
        chosen = None if sent.all() else np.flatnonzero(sent)
        if chosen is not None and not len(chosen):
            return None
        kinds = _in_turn(
            np.where(is_delete, _DELETE, _BEFORE), np.where(self._was, _AFTER, _INSERT), chosen
        )
        position = np.repeat(np.arange(size), 2) if chosen is None else chosen >> 1
        of_keys = pa.array(position)
        columns = [plain(column).take(of_keys) for column in keys]
        columns += [_columns_in_turn(*each, chosen) for each in zip(before, after)]
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema), kinds=kinds)

    def _inserts(
        self, keys: Sequence[pa.Array], after: Sequence[pa.Array], schema: pa.Schema
    ) -> ColumnBatch | None:
        if not self._is_now.any():
            return None
        columns = [*map(plain, keys), *after]
        if not self._is_now.all():
            kept = pa.array(self._is_now)
            columns = [column.filter(kept) for column in columns]
        return ColumnBatch(pa.RecordBatch.from_arrays(columns, schema=schema), kinds=None)


def _in_turn(first: npt.NDArray[Any], last: npt.NDArray[Any], chosen: Any) -> Any:
    """The values of both in turn, or those that are chosen of them."""
    both = np.stack([first, last], axis=1).ravel()
    return both if chosen is None else both.take(chosen)


def _columns_in_turn(first: pa.Array, last: pa.Array, chosen: Any) -> pa.Array:
    kind = first.type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if is_number and not first.null_count and not last.null_count:
        return pa.array(_in_turn(first.to_numpy(), last.to_numpy(), chosen))
    if chosen is None:
        chosen = np.arange(2 * len(first))
    places = (chosen >> 1) + (chosen & 1) * len(first)
    return pa.concat_arrays([first, last]).take(pa.array(places))


def changed_rows(before: Sequence[pa.Array], after: Sequence[pa.Array], size: int) -> Any:
    """Which of so many rows differ in one of the columns. A null equals a null, and NaN itself."""
    found = np.zeros(size, np.bool_)
    for first, last in zip(before, after):
        found |= _differ(first, last)
    return found


def _differ(first: pa.Array, last: pa.Array) -> Any:
    kind = first.type
    if pa.types.is_null(kind):
        return np.zeros(len(first), np.bool_)
    if not first.null_count and not last.null_count:
        return _values_differ(first, last)
    there, is_there = (each.is_valid().to_numpy(zero_copy_only=False) for each in (first, last))
    both = np.flatnonzero(there & is_there)
    found = there != is_there
    found[both] = _values_differ(first.take(pa.array(both)), last.take(pa.array(both)))
    return found


def _values_differ(first: pa.Array, last: pa.Array) -> Any:
    """The same where nothing is null."""
    kind = first.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        ours, theirs = first.to_numpy(), last.to_numpy()
        found = ours != theirs
        if pa.types.is_floating(kind):
            found &= ~(np.isnan(ours) & np.isnan(theirs))
        return found
    if pa.types.is_struct(kind):
        return changed_rows(first.flatten(), last.flatten(), len(first))
    if not pa.types.is_nested(kind):
        return pc.not_equal(first, last).to_numpy(zero_copy_only=False)
    if pa.types.is_map(kind):
        inside = pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)]))
        first, last = _entries(first, inside), _entries(last, inside)
    lengths = first.value_lengths().to_numpy(zero_copy_only=False)
    found = lengths != last.value_lengths().to_numpy(zero_copy_only=False)
    same = np.flatnonzero(~found)
    elements = [each.take(pa.array(same)).flatten() for each in (first, last)]
    owners = np.repeat(same, lengths[same])
    found[owners[_differ(elements[0], elements[1])]] = True
    return found


def _entries(maps: pa.Array, kind: pa.DataType) -> pa.Array:
    """Maps as lists of their entries."""
    starts = maps.offsets.to_numpy()
    fields = [maps.keys, maps.items]
    entries = pa.StructArray.from_arrays(fields, fields=list(kind.value_type))
    return pa.ListArray.from_arrays(pa.array(starts), entries)
