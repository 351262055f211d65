"""Slices of columns in snapshots: for each key group one Arrow table of all its keys and slices, kept in the backend under one of the keys.

So state moves by key group when a job is rescaled, and nothing in it is a Python object per key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.keys import key_group
from flinkpy.network.column_keys import key_hashes
from flinkpy.windowing.columnar_slices import ColumnAggregate, Part

INPUT, SLICE = b"input", "slice"


@dataclass(frozen=True)
class SavedSlice:
    """The groups of one slice, with their key columns instead of numbers."""

    start: int
    keys: Any  # a RecordBatch; None where there are no keys
    part: Part


def save(
    into: MutableMapping[Any, Any], slices: Sequence[SavedSlice], until: Mapping[int, int], default_until: int,
    aggregates: Sequence[ColumnAggregate], input_schema: Any, max_parallelism: int,
) -> None:
    """``until``: up to when windows were evaluated for the keys of a key group, where that is not the default."""
    if not slices:
        return
    batches = [_batch(each, aggregates) for each in slices]
    table = pa.Table.from_batches(batches).replace_schema_metadata({INPUT: input_schema.serialize().to_pybytes()}).combine_chunks()
    groups, keys = _groups(slices, max_parallelism)
    order = np.argsort(groups, kind="stable")
    table = table.take(pa.array(order))
    groups = groups[order]
    starts = np.flatnonzero(np.r_[True, groups[1:] != groups[:-1]])
    for begin, end in zip(starts, np.r_[starts[1:], len(groups)]):
        group = int(groups[begin])
        into[_key_at(keys, int(order[begin]))] = until.get(group, default_until), _to_bytes(table.slice(begin, end - begin))


def group_numbers(keys: Any, max_parallelism: int) -> Any:
    """The key group of each row of key columns."""
    return (key_hashes(keys, keys.schema.names) % np.uint64(max_parallelism)).astype(np.int64)


def input_schema_of(data: bytes) -> Any:
    """The schema of the records the state was made from."""
    return pa.ipc.read_schema(pa.BufferReader(pa.ipc.open_stream(data).schema.metadata[INPUT]))


def load(data: bytes, keys: Sequence[str], aggregates: Sequence[ColumnAggregate]) -> Iterator[SavedSlice]:
    """The slices of one key group. Their parts have no numbers yet."""
    table = pa.ipc.open_stream(data).read_all().combine_chunks()
    starts = table.column(SLICE).to_numpy()
    for start in np.unique(starts).tolist():
        rows = table.take(pa.array(np.flatnonzero(starts == start))).combine_chunks().to_batches()[0]
        yield SavedSlice(start, _select(rows, "key ") if keys else None, _part(rows, aggregates))


def _batch(saved: SavedSlice, aggregates: Sequence[ColumnAggregate]) -> Any:
    part = saved.part
    columns: dict[str, Any] = {SLICE: pa.array(np.full(part.size, saved.start, np.int64))}
    if saved.keys is not None:
        columns.update((f"key {name}", column) for name, column in zip(saved.keys.schema.names, saved.keys.columns))
    for at, aggregate in enumerate(aggregates):
        columns[f"count {at}"] = pa.array(part.counts[at])
        if aggregate.kind != "count":
            columns[f"value {at}"] = aggregate.saved(part.counts[at], part.values[at])
    if part.firsts is not None:
        columns.update((f"first {name}", column) for name, column in zip(part.firsts.schema.names, part.firsts.columns))
    return pa.RecordBatch.from_pydict(columns)


def _part(rows: Any, aggregates: Sequence[ColumnAggregate]) -> Part:
    counts: list[Any] = []
    values: list[Any] = []
    for at, aggregate in enumerate(aggregates):
        counts.append(rows.column(f"count {at}").to_numpy())
        values.append(None if aggregate.kind == "count" else aggregate.taken_in(rows.column(f"value {at}"))[1])
    firsts = _select(rows, "first ")
    return Part(rows.num_rows, None, counts, values, firsts if firsts.num_columns else None)


def _select(rows: Any, prefix: str) -> Any:
    fields = [field for field in rows.schema if field.name.startswith(prefix)]
    schema = pa.schema([field.with_name(field.name.removeprefix(prefix)) for field in fields])
    return pa.RecordBatch.from_arrays([rows.column(field.name) for field in fields], schema=schema)


def _groups(slices: Sequence[SavedSlice], max_parallelism: int) -> tuple[Any, Any]:
    """The key group of each row, and the key columns of all rows together (None: no keys)."""
    if slices[0].keys is None:
        return np.full(sum(each.part.size for each in slices), key_group(None, max_parallelism)), None
    keys = pa.Table.from_batches([each.keys for each in slices]).combine_chunks().to_batches()[0]
    return group_numbers(keys, max_parallelism), keys


def _key_at(keys: Any, row: int) -> Any:
    """As rows have it: the value, or a tuple of several."""
    if keys is None:
        return None
    values = [column[row].as_py() for column in keys.columns]
    return values[0] if len(values) == 1 else tuple(values)


def _to_bytes(table: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data
