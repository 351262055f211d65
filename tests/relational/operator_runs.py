"""Runs operators of tables by themselves: one subtask, or several behind a hash exchange."""

from __future__ import annotations

import datetime
import functools
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import MAX_TIMESTAMP, ColumnBatch, Watermark
from flinkpy.network.partitioning.column_hashes import key_hashes
from flinkpy.operators.base import StreamOperator
from flinkpy.relational.relational_operator import ROWS_AT_ONCE
from tests.operators.harness import ChainHarness, linear

BATCH_SIZES = (1, 7, 1 << 30)
MEMORY = (None, 0, 700, 10_000)
"""Bytes for an operator of BATCH: any number, none, too few, and some."""


def batches(table: pa.Table, size: int) -> Iterator[pa.RecordBatch]:
    """The rows of a table in batches of this size."""
    whole = table.combine_chunks()
    for start in range(0, whole.num_rows, size):
        yield from whole.slice(start, size).combine_chunks().to_batches()


def run(
    operator: StreamOperator,
    *inputs: pa.Table,
    size: int = 7,
    right_first: bool = False,
    schema: pa.Schema | None = None,
    time: int | None = None,
    memory: int | None = None,
    is_short: bool = False,
) -> pa.Table:
    """What the operator gives for these inputs, of which each is read to its end before the
    next. ``schema``: of the results, if the operator itself has none. ``time``: the rows are in
    the order of this column, and before each batch a watermark says that those before have come. ``memory``: of the operator.
    ``is_short``: the process is asked to free memory after each batch."""
    harness = ChainHarness(
        linear(pickle.loads(pickle.dumps(operator)), inputs=len(inputs)), memory=memory
    )
    order = list(enumerate(inputs))
    for number, table in reversed(order) if right_first else order:
        for batch in batches(table, size):
            if time is not None:
                first = batch.column(time)[0].as_py()
                moment = (first - datetime.datetime(1970, 1, 1)) // datetime.timedelta(
                    milliseconds=1
                )
                harness.control(Watermark(moment - 1))
            harness.chain.batch_inputs()[number](ColumnBatch(batch))
            for each in harness.chain.operators if is_short else ():
                each.free_memory()
        harness.chain.end_input(number)
    harness.chain.control(Watermark(MAX_TIMESTAMP))
    while not harness.chain.finish():
        assert harness.chain.has_rest
    assert harness.chain.close() == []
    assert harness.managed_memory.reserved == 0
    elements = harness.writers[0].elements
    assert elements[-1] == Watermark(MAX_TIMESTAMP)
    given = [each.data for each in elements if isinstance(each, ColumnBatch)]
    assert all(0 < each.num_rows <= ROWS_AT_ONCE for each in given)
    if schema is None:
        schema = operator.schema  # type: ignore[attr-defined]
    assert all(each.schema.equals(schema) for each in given)
    return pa.Table.from_batches(given, schema=schema)


def parts_by_key(table: pa.Table, keys: Sequence[int], parallelism: int) -> list[pa.Table]:
    """The rows for each subtask behind an exchange by these columns."""
    names = [table.schema.names[at] for at in keys]
    if not table.num_rows or not names:
        return [table, *[table.slice(0, 0)] * (parallelism - 1)]
    data = table.combine_chunks().to_batches()[0]
    channels = key_hashes(data, names) % np.uint64(parallelism)
    return [table.filter(pa.array(channels == number)) for number in range(parallelism)]


def asked_of_duckdb(text: str, **tables: pa.Table) -> pa.Table:
    """What DuckDB answers over these tables."""
    connection = _duckdb()
    for name, table in tables.items():
        connection.register(name, table)
    answer: pa.Table = connection.sql(text).to_arrow_table()
    return answer


@functools.lru_cache(maxsize=1)
def _duckdb() -> Any:
    import duckdb

    return duckdb.connect(config={"threads": 1})


def as_rows(table: pa.Table) -> list[Any]:
    """The rows, sorted; floats are rounded, and NaN is a word."""
    rows = zip(*(map(_shown, column.to_pylist()) for column in table.columns))
    return sorted(rows, key=repr)


def _shown(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else float(f"{value:.9g}") + 0.0
    return value
