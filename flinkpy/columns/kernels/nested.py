"""Kernels for structs, lists and maps."""

from __future__ import annotations

import difflib
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import BOOL, INT, Kernel, Types, bring, common_type


def _is_list(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _plain_lists(lists: pa.Array) -> Any:
    """Lists of a fixed size as lists of any size."""
    return (
        lists.cast(pa.list_(lists.type.value_type))
        if pa.types.is_fixed_size_list(lists.type)
        else lists
    )


def get(types: Types, field: str | int) -> Kernel:
    kind = types[0]
    if not pa.types.is_struct(kind):
        has_items = _is_list(kind) or pa.types.is_map(kind)
        advice = "; an item of a list or a map is at(...)" if has_items else ""
        raise TypeError(f"it needs a struct{advice}")
    names = [each.name for each in kind]
    if isinstance(field, int):
        if field >= len(names):
            raise TypeError(f"there are {len(names)} fields, counted from 0")
        return lambda structs: pc.struct_field(structs, [field])
    if field not in names:
        near = difflib.get_close_matches(field, names, n=1)
        raise TypeError(
            f"there is no field {field!r}; "
            + (f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}")
        )
    return lambda structs: pc.struct_field(structs, [names.index(field)])


def at(types: Types) -> Kernel:
    kind, index = types
    if pa.types.is_map(kind):
        common_type([kind.key_type, index])  # refuses a key of another kind
        return lambda maps, keys: _values_of(maps, keys)
    if not _is_list(kind):
        raise TypeError("it needs a list or a map")
    if not pa.types.is_integer(index) and not pa.types.is_null(index):
        raise TypeError("the position of an item is a whole number from 1 on")
    return lambda lists, positions: items_at(
        lists, positions.as_py() if isinstance(positions, pa.Scalar) else positions
    )


def items_at(lists: pa.Array, positions: Any) -> Any:
    """The items at these positions, counted from 1: one for all lists, or an array of them. Null
    where there is no such item. Raises IndexError for a position below 1."""
    lists = _plain_lists(lists)
    missing = lists.is_null().to_numpy(zero_copy_only=False)
    if positions is None:
        return pa.nulls(len(lists), lists.type.value_type)
    if not isinstance(positions, int):
        missing |= positions.is_null().to_numpy(zero_copy_only=False)
        positions = positions.cast(INT).fill_null(1).to_numpy()
    if (isinstance(positions, int) and positions < 1) or np.any(
        (np.asarray(positions) < 1) & ~missing
    ):
        raise IndexError(
            f"the items of a list are counted from 1, this is {np.min(positions)}; the last "
            "one is at(col(...).cardinality)"
        )
    offsets = lists.offsets.to_numpy()
    where = offsets[:-1] + positions - 1
    return lists.values.take(pa.array(where, INT, mask=missing | (where >= offsets[1:])))


def _values_of(maps: pa.Array, keys: Any) -> Any:
    if isinstance(keys, pa.Scalar):
        try:
            key = keys.cast(maps.type.key_type)
        except pa.ArrowInvalid:  # no key equals it, such as 1.5 among whole numbers
            key = pa.scalar(None, maps.type.key_type)
        return (
            pc.map_lookup(maps, key, "last")
            if key.is_valid
            else pa.nulls(len(maps), maps.type.item_type)
        )
    found = [
        None if held is None else dict(held).get(key)
        for held, key in zip(maps.to_pylist(), keys.to_pylist())
    ]
    return pa.array(found, maps.type.item_type)


def cardinality(types: Types) -> Kernel:
    kind = types[0]
    if pa.types.is_map(kind):
        return lambda maps: pc.if_else(
            maps.is_valid(), pa.array(np.diff(maps.offsets.to_numpy()), INT), pa.scalar(None, INT)
        )
    if not _is_list(kind):
        raise TypeError("it needs a list or a map")
    return lambda lists: pc.list_value_length(lists).cast(INT)


def array_contains(types: Types) -> Kernel:
    kind, needle = types
    if not _is_list(kind):
        raise TypeError("it needs a list")
    wanted = common_type([kind.value_type, needle])
    item_cast, needle_cast = bring(kind.value_type, wanted), bring(needle, wanted)

    def contains(lists: pa.Array, needles: pa.Array | pa.Scalar) -> Any:
        lists = _plain_lists(lists)
        needles = pa.repeat(needles, len(lists)) if isinstance(needles, pa.Scalar) else needles
        items = lists.flatten()  # without what stands behind nulls
        parents = np.repeat(
            np.arange(len(lists)), pc.list_value_length(lists).fill_null(0).to_numpy()
        )
        items = items if item_cast is None else item_cast(items)
        wanted_items = (needles if needle_cast is None else needle_cast(needles)).take(
            pa.array(parents)
        )
        equal = pc.and_(items.is_null(), wanted_items.is_null())
        if not pa.types.is_null(wanted):
            equal = pc.if_else(
                pc.or_(items.is_null(), wanted_items.is_null()),
                equal,
                pc.equal(items, wanted_items),
            )
        counts = np.bincount(parents[equal.to_numpy(zero_copy_only=False)], minlength=len(lists))
        return pc.if_else(lists.is_valid(), pa.array(counts > 0, BOOL), pa.scalar(None, BOOL))

    return contains
