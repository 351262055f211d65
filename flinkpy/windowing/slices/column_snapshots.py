"""Slices of columns in snapshots: for each key group one Arrow table of all its keys and slices,
kept in the backend under a key of the group.

So state moves by key group when a job is rescaled, and nothing in it is a Python object per key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.aggregates.of_columns import ColumnAggregate
from flinkpy.core.keys import key_group
from flinkpy.operators.columnar.tables_by_group import (
    by_group,
    group_numbers,
    key_of_group,
    with_input,
)
from flinkpy.state.snapshots.arrow_streams import to_bytes
from flinkpy.windowing.slices.grouped_parts import Part

SLICE, KEY, FIRST = "slice", "key ", "first "  # KEY and FIRST begin the names of columns


@dataclass(frozen=True)
class SavedSlice:
    """The groups of one slice, with their key columns instead of numbers."""

    start: int
    keys: Any  # a RecordBatch; None where there are no keys
    part: Part


def save(
    slices: Sequence[SavedSlice],
    aggregates: Sequence[ColumnAggregate],
    input_schema: object,
    max_parallelism: int,
) -> Iterator[tuple[int, int, bytes]]:
    """For each key group a key of it, its number, and the table of all its keys and slices."""
    batches = [_batch(each, aggregates) for each in slices]
    table = pa.Table.from_batches(batches)
    table = table.replace_schema_metadata(
        with_input(table.schema, input_schema).metadata
    ).combine_chunks()
    for group, part in by_group(table, _groups(slices, max_parallelism)):
        yield key_of_group(group, max_parallelism), group, to_bytes(part)


def load(
    table: Any, keys: Sequence[str], aggregates: Sequence[ColumnAggregate]
) -> Iterator[SavedSlice]:
    """The slices of one key group. Their parts have no numbers yet."""
    starts = table.column(SLICE).to_numpy()
    for start in np.unique(starts).tolist():
        rows = table.take(pa.array(np.flatnonzero(starts == start)))
        yield SavedSlice(start, selected(rows, KEY) if keys else None, part_of(rows, aggregates))


def _batch(saved: SavedSlice, aggregates: Sequence[ColumnAggregate]) -> Any:
    columns = {SLICE: pa.array(np.full(saved.part.size, saved.start, np.int64))}
    return pa.RecordBatch.from_pydict({**columns, **columns_of(saved.keys, saved.part, aggregates)})


def columns_of(keys: Any, part: Part, aggregates: Sequence[ColumnAggregate]) -> dict[str, Any]:
    """A part as Arrow columns, with its key columns if there are some."""
    columns: dict[str, Any] = {}
    if keys is not None:
        columns.update(
            (KEY + name, column) for name, column in zip(keys.schema.names, keys.columns)
        )
    for at, aggregate in enumerate(aggregates):
        counts = part.counts[at]
        columns[f"count {at}"] = pa.array(
            np.ones(part.size, np.int64) if counts is None else counts
        )
        if not aggregate.only_counts:
            columns[f"value {at}"] = aggregate.accumulators(part.counts[at], part.values[at])
    if part.firsts is not None:
        columns.update(
            (FIRST + name, column)
            for name, column in zip(part.firsts.schema.names, part.firsts.columns)
        )
    return columns


def part_of(rows: Any, aggregates: Sequence[ColumnAggregate]) -> Part:
    """The part again. It has no numbers of keys yet."""
    counts: list[Any] = []
    values: list[Any] = []
    for at, aggregate in enumerate(aggregates):
        counts.append(rows.column(f"count {at}").to_numpy())
        values.append(
            None if aggregate.only_counts else aggregate.accumulators_of(rows.column(f"value {at}"))
        )
    firsts = selected(rows, FIRST)
    return Part(rows.num_rows, None, counts, values, firsts if firsts.num_columns else None)


def selected(rows: Any, prefix: str) -> Any:
    """The columns whose names begin so, under the rest of their names."""
    fields = [field for field in rows.schema if field.name.startswith(prefix)]
    schema = pa.schema([field.with_name(field.name.removeprefix(prefix)) for field in fields])
    return pa.RecordBatch.from_arrays([rows.column(field.name) for field in fields], schema=schema)


def _groups(slices: Sequence[SavedSlice], max_parallelism: int) -> Any:
    """The key group of each row of all slices."""
    parts = [
        group_numbers(each.keys, each.keys.schema.names, max_parallelism)
        if each.keys is not None
        else np.full(each.part.size, key_group(None, max_parallelism))
        for each in slices
    ]
    return np.concatenate(parts)
