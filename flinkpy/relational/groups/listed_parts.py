"""Parts of aggregates that are lists: what a group has of a batch, on its way to where the group
lies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.relational_operator import plain


def list_type(kinds: Sequence[pa.DataType], numbers: int) -> pa.DataType:
    """Of lists of values of these types, each with so many whole numbers."""
    values = [pa.field(f"value {at}", kind) for at, kind in enumerate(kinds)]
    return pa.list_(pa.struct([*values, *_number_fields(numbers)]))


def _number_fields(numbers: int) -> list[pa.Field]:
    return [pa.field(f"number {at}", pa.int64()) for at in range(numbers)]


def listed(groups: npt.NDArray[Any], columns: Sequence[pa.Array], kind: Any, size: int) -> pa.Array:
    """A list for each of so many groups: its rows, in their order."""
    order = np.argsort(groups, kind="stable")
    ordered = pa.array(order)
    fields = [plain(column).take(ordered) for column in columns]
    rows = pa.StructArray.from_arrays(fields, fields=list(kind.value_type))
    offsets = np.searchsorted(groups[order], np.arange(size + 1)).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), rows, type=kind)


def net_values(
    groups: npt.NDArray[Any],
    columns: Sequence[pa.Array],
    added: Sequence[npt.NDArray[np.int64]],
    kind: Any,
    size: int,
) -> pa.Array:
    """A list for each of so many groups: its distinct values, with the sum of what each row adds.
    Values to which nothing is added in the end are left out."""
    values = encoded([pa.array(groups), *map(plain, columns)])
    sums = []
    for each in added:
        total = np.zeros(values.count, np.int64)
        np.add.at(total, values.codes, each)
        sums.append(total)
    chosen = np.flatnonzero(np.any(sums, axis=0))
    rows = values.firsts[chosen]
    taken = [plain(column).take(pa.array(rows)) for column in columns]
    numbers = [pa.array(each[chosen]) for each in sums]
    return listed(groups[rows], [*taken, *numbers], kind, size)


def unlisted(
    lists: pa.Array, groups: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[pa.Array]]:
    """The rows of all lists, as the group of each and their columns; ``groups`` has that of each
    list."""
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    return np.repeat(groups, lengths), lists.flatten().flatten()
