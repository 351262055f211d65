"""GROUP BY without windows in STREAMING: COUNT, SUM and AVG by sparse keys of 64 bits, with what
goes out; where rows only come, and where a third of them is taken back. Beside Arrow's grouping of
each batch by itself, which keeps nothing.

Figures are rows per second of processor time over the second half of the rows, when most keys are
known."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, compare, quick
from benchmarks.region_pauses import opened
from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall

INPUTS = pa.schema([("k", pa.int64()), ("v", pa.int64())])
KEYS = (10**3, 10**4, 10**5, 10**6)
SIZES = (8192, 65_536)
CALLS = {"COUNT": (), "SUM": (1,), "AVG": (1,)}
_STEP = 7919 * 1_000_003  # keys are no small numbers


def made(keys: int, rows: int, size: int, *, takes_back: bool) -> list[ColumnBatch]:
    """Batches of rows; each third one takes back the one two rows before it."""
    random = np.random.default_rng(1)
    key, value = random.integers(0, keys, rows) * _STEP, random.integers(0, 1000, rows)
    kinds = np.zeros(rows, np.int8)
    gone = np.arange(2, rows, 3) if takes_back else np.empty(0, np.int64)
    key[gone], value[gone], kinds[gone] = key[gone - 2], value[gone - 2], 1
    data = pa.RecordBatch.from_arrays([pa.array(key), pa.array(value)], schema=INPUTS)
    return [
        ColumnBatch(data.slice(at, size), kinds=kinds[at : at + size] if takes_back else None)
        for at in range(0, rows, size)
    ]


def grouped(batches: Sequence[ColumnBatch], *, takes_back: bool) -> Callable[[], float]:
    """By the operator."""
    calls = tuple(AggregateCall(call, at, BigIntType()) for call, at in CALLS.items())
    schema = pa.schema([INPUTS.field(0), *(pa.field(call, pa.int64()) for call in CALLS)])
    spec = GroupSpec((0,), calls, takes_back=takes_back)

    def run() -> float:
        process = opened(GroupAggregateOperator(spec, INPUTS, schema))
        half = len(batches) // 2
        for batch in batches[:half]:
            process(batch)
        return _rate(process, batches[half:])

    return run


def by_itself(batches: Sequence[ColumnBatch]) -> Callable[[], float]:
    """Each batch grouped by Arrow."""

    def group(batch: ColumnBatch) -> None:
        table = pa.Table.from_batches([batch.data]).group_by("k", use_threads=False)
        table.aggregate([("v", "count"), ("v", "sum"), ("v", "mean")])

    return lambda: _rate(group, batches[len(batches) // 2 :])


def _rate(process: Callable[[ColumnBatch], None], batches: Sequence[ColumnBatch]) -> float:
    started = time.process_time()
    for batch in batches:
        process(batch)
    return sum(map(len, batches)) / (time.process_time() - started)


def main() -> list[Comparison]:
    """By the number of keys, the size of batches, and whether rows are taken back."""
    results = []
    for keys in KEYS[: 2 if quick() else None]:
        rows = 1 << 18 if quick() else max(1 << 20, 2 * keys)
        for size in SIZES:
            for takes_back in (False, True):
                batches = made(keys, rows, size, takes_back=takes_back)
                name = f"{keys:,} keys by {size:,}" + (", a third back" if takes_back else "")
                run = grouped(batches, takes_back=takes_back)
                results.append(compare(name, run, by_itself(batches), rounds=3))
    return results
