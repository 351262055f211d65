"""Operators of BATCH over columns with little managed memory, against the same without a limit: one
thread, no network. Each run is a process of its own, so that its memory can be told: the most that
it has held beyond what it held before the first row.

Rows are drawn batch by batch, so the input takes no memory. Group by: 10^7 rows of as many keys,
``SUM`` and ``COUNT``; then ten keys that have half of the rows. Join: 10^7 rows of each side, each
with one partner. Sort: a tenth as many rows, by a number and a text of 40 bytes. Both runs must
give as many rows, and the same sum of each column; sorted rows must be in order, and those that
went in.

    python -m benchmarks.spilling sort 200000000 67108864    one run: 10 GB, with 64 MB"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.harness import Comparison, quick
from flinkpy.columns.aggregate_plan import plan_aggregates
from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.base import StreamOperator
from flinkpy.operators.batch.batch_forms import batch_form
from flinkpy.operators.keyed_columns.distinct_rows import DistinctRowsOperator
from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator
from flinkpy.relational.hash_groups.hash_aggregate import HashAggregateOperator
from flinkpy.relational.joins.hash_join import HashJoinOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.ordering.sort_rows import SortOperator
from flinkpy.sql.physical.physical_nodes import Phase
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import AggregateCall, SortKey
from flinkpy.table.expressions import col
from tests.operators.harness import ChainHarness, linear

LIMIT = 64 << 20
_ROWS = 8192
_SPREAD = 7_919  # keys are not small
_LONG = BigIntType()
_TEXT = 40  # bytes
_ODD = np.array([each * 0x9E3779B97F4A7C15 % (1 << 64) | 1 for each in range(1, 6)], np.uint64)
Batches = Iterator[pa.RecordBatch]


def numbers(count: int, prefix: str = "") -> Batches:
    """A key that each row has alone, in no order, and a number."""
    step = 6_700_417  # has no factor in common with the counts here
    for begin in range(0, count, _ROWS):
        at = np.arange(begin, min(begin + _ROWS, count))
        keys = at * step % count * _SPREAD
        yield pa.record_batch({f"{prefix}k": pa.array(keys), f"{prefix}v": pa.array(at)})


def skewed(count: int) -> Batches:
    """Every second row has one of ten keys."""
    for data in numbers(count):
        keys = data.column(0).to_numpy()
        keys = np.where(data.column(1).to_numpy() % 2 == 0, keys % 10, keys)
        yield pa.record_batch({"k": pa.array(keys), "v": data.column(1)})


def texts(count: int) -> Batches:
    """Few numbers, and texts of forty bytes."""
    for data in numbers(count):
        keys = pc.utf8_lpad(data.column(0).cast(pa.string()), _TEXT, "x")
        yield pa.record_batch({"n": pc.bit_wise_and(data.column(0), 1023), "t": keys})


def operator_of(name: str) -> tuple[StreamOperator, tuple[Any, ...]]:
    """The operator, and its inputs as functions of the number of rows."""
    [schema] = {data.schema for data in numbers(1)}
    if name.startswith("group"):
        calls = [AggregateCall("SUM", (1,), _LONG), AggregateCall("COUNT", (), _LONG)]
        result = pa.schema([schema.field(0), ("s", pa.int64()), ("c", pa.int64())])
        drawn = skewed if "few" in name else numbers
        return HashAggregateOperator((0,), calls, Phase.WHOLE, schema, result), (drawn,)
    if name.startswith("join"):
        other = pa.schema([field.with_name(f"r_{field.name}") for field in schema])
        spec = JoinSpec(JoinKind.INNER, (0,), (0,))
        operator = HashJoinOperator(spec, schema, other, pa.schema([*schema, *other]))
        return operator, (numbers, lambda count: numbers(count, "r_"))
    if name.startswith("distinct"):
        return batch_form(DistinctRowsOperator(("k",))), (numbers,)
    if name.startswith("aggregate"):
        aggregates = (col("v").sum.alias("s"), col("v").max.alias("m"))
        plan = plan_aggregates(aggregates, ("k",), "aggregate()")
        return batch_form(KeyedAggregatesOperator(("k",), plan.calls)), (numbers,)
    [schema] = {data.schema for data in texts(1)}
    return SortOperator([SortKey(0), SortKey(1, descending=True)], schema), (texts,)


def measure(name: str, count: int, limit: int | None) -> dict[str, Any]:
    """Runs it in this process, after a small run that loads what it needs."""
    Run(name, 10_000, limit)
    before, began = peak(), time.process_time()
    run = Run(name, count, limit)
    return {
        "rows": run.rows,
        "sums": run.sums,
        "in order": run.is_in_order,
        "given": run.given,
        "seconds": time.process_time() - began,
        "memory": peak() - before,
        "spilled": run.spilled,
    }


class Run:
    """What came out of one run, and what had gone in: rows and sums of all columns. And whether
    sorted rows are in order."""

    def __init__(self, name: str, count: int, limit: int | None) -> None:
        self.rows = 0
        self.sums: dict[str, int] = {}
        self.given: dict[str, int] = {}
        self.is_in_order = True
        self._last: pa.RecordBatch | None = None
        operator, inputs = operator_of(name)
        harness = ChainHarness(linear(operator, inputs=len(inputs)), memory=limit)
        self._emitted = harness.writers[0].elements
        for number, drawn in reversed(list(enumerate(inputs))):
            for data in drawn(count):
                add_sums(self.given, data)
                harness.chain.batch_inputs()[number](ColumnBatch(data))
                self._look()
            harness.chain.end_input(number)
        while not harness.chain.finish():
            self._look()
        self._look()
        self.spilled = operator.measures(0).get("spilledBytes", 0)
        harness.chain.close()

    def _look(self) -> None:
        for each in self._emitted:
            if isinstance(each, ColumnBatch):
                self._see(each.data)
        self._emitted.clear()

    def _see(self, data: pa.RecordBatch) -> None:
        self.rows += data.num_rows
        add_sums(self.sums, data)
        if "t" in data.schema.names:
            seen = data if self._last is None else pa.concat_batches([self._last, data])
            self.is_in_order &= is_sorted(seen)
            self._last = data.slice(data.num_rows - 1)


def add_sums(sums: dict[str, int], data: pa.RecordBatch) -> None:
    """Of numbers their sum, of texts that of a hash of each, so that none can stand for another."""
    for field, column in zip(data.schema, data.columns):
        if pa.types.is_integer(column.type):
            found = pc.sum(column).as_py()
        else:
            words = _bytes_of(column).view(np.uint64).reshape(len(column), -1)
            with np.errstate(over="ignore"):
                hashes = (words * _ODD).sum(axis=1, dtype=np.uint64)
                hashes ^= hashes >> np.uint64(29)
                found = int((hashes * hashes).sum(dtype=np.uint64))
        sums[field.name] = (sums.get(field.name, 0) + found) % (1 << 64)


def is_sorted(data: pa.RecordBatch) -> bool:
    """Whether the numbers never fall, and texts of one number never rise."""
    numbers, texts = data.column(0).to_numpy(), _bytes_of(data.column(1)).view(f"S{_TEXT}")
    is_same = numbers[1:] == numbers[:-1]
    rises = (numbers[1:] > numbers[:-1]) | (is_same & (texts[1:] <= texts[:-1]))
    return bool(rises.all())


def _bytes_of(column: pa.Array) -> Any:
    """Of texts that are all as long as ``texts`` makes them, one after the other."""
    assert pc.all(pc.equal(pc.binary_length(column), _TEXT)).as_py()
    data = np.frombuffer(column.buffers()[2], np.uint8)
    begin = int(np.frombuffer(column.buffers()[1], np.int32)[column.offset])
    return data[begin : begin + len(column) * _TEXT].copy()


def peak() -> int:
    """The most that this process has held; by getrusage it would be its parent's, if that is
    larger."""
    lines = Path("/proc/self/status").read_text().splitlines()
    [told] = [line for line in lines if line.startswith("VmHWM")]
    return int(told.split()[1]) << 10


def in_own_process(name: str, count: int, limit: int | None) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.spilling", name, str(count), json.dumps(limit)]
    found = subprocess.run(command, check=True, capture_output=True, cwd=Path.cwd())
    answer: dict[str, Any] = json.loads(found.stdout)
    return answer


def main() -> list[Comparison]:
    count = 1_000_000 if quick() else 10_000_000
    limit = LIMIT // 10 if quick() else LIMIT
    for name in ("group by", "group by, few keys have half", "join", "sort"):
        rows = count // 10 if name == "sort" else count
        free, bounded = (in_own_process(name, rows, each) for each in (None, limit))
        assert free["rows"] == bounded["rows"], name
        assert free["sums"] == bounded["sums"], name
        assert bounded["in order"], name
        assert name != "sort" or bounded["sums"] == bounded["given"]
        memory = f"{bounded['memory'] >> 20} MB of memory with a limit of {limit >> 20} MB"
        print(
            f"{name}, {rows:,} rows: {bounded['seconds'] / free['seconds']:.2f} x the time of "
            f"{free['seconds']:.1f} s; {memory}, {free['memory'] >> 20} MB without one; "
            f"{int(bounded['spilled']) >> 20} MB spilled",
            flush=True,
        )
    return []


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(measure(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3]))))
    else:
        main()
