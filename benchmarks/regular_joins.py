"""A regular join of two growing or changing inputs, one thread, no network: each side has five
columns, one of them text. Rows a second of processor time, and memory a row of state.

1 M x 100 k has ten rows of the left for each of the right; 1 M x 1 M has one. With retractions
every fourth row of the left, and of the right, takes back and replaces one that is there."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, quick
from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY
from flinkpy.core.elements import ColumnBatch
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.sql.rex.relational_terms import JoinKind
from tests.operators.harness import ChainHarness, linear

_SPARSE = 7_919  # keys are not small


@dataclass(frozen=True)
class Shape:
    """What is joined. ``unique``: id and, of the right, the join key are known to be unique."""

    left: int
    right: int
    kind: JoinKind = JoinKind.INNER
    retracts: bool = False
    is_unique: bool = True

    def __str__(self) -> str:
        known = "unique keys" if self.is_unique else "no unique keys"
        changes = f"with retractions, {known}" if self.retracts else "only inserts"
        return f"{self.kind.value} {self.left:,} x {self.right:,}, {changes}"


def rows_of(prefix: str, ids: Any, keys: Any, chance: np.random.Generator) -> pa.RecordBatch:
    """Five columns of so many rows."""
    count = len(ids)
    columns = {
        "id": pa.array(ids),
        "k": pa.array(keys),
        "v": pa.array(chance.random(count)),
        "text": pa.array(chance.integers(0, 1_000_000, count)).cast(pa.string()),
        "n": pa.array(chance.integers(0, 100, count)),
    }
    return pa.record_batch({f"{prefix}{name}": column for name, column in columns.items()})


def changes_of(prefix: str, keys: Any, size: int, retracts: bool) -> list[ColumnBatch]:
    """Batches of inserts; with ``retracts`` in each some rows of it are replaced by others, in the
    batch behind it."""
    chance = np.random.default_rng(len(keys))
    found, before = [], None
    for begin in range(0, len(keys), size):
        ids = np.arange(begin, min(begin + size, len(keys)))
        data = rows_of(prefix, ids, keys[ids], chance)
        kinds = np.zeros(len(ids), np.int8)
        if retracts and before is not None:
            old = before.take(pa.array(np.arange(0, before.num_rows, 8)))
            new = rows_of(prefix, old.column(0).to_numpy(), old.column(1).to_numpy(), chance)
            both = pa.concat_batches([old, new])
            count = old.num_rows
            both = both.take(pa.array(np.arange(2 * count).reshape(2, count).T.ravel()))
            before, data = data, pa.concat_batches([both, data])
            kinds = np.concatenate((np.tile(np.array([1, 2], np.int8), count), kinds))
        else:
            before = data
        found.append(ColumnBatch(data, None, kinds))
    return found


def run(shape: Shape, size: int) -> str:
    """Joins once, and says what it took."""
    chance = np.random.default_rng(7)
    right_keys = chance.permutation(shape.right) * _SPARSE
    left_keys = chance.integers(0, shape.right, shape.left) * _SPARSE
    rights = changes_of("r_", right_keys, max(1, size * shape.right // shape.left), shape.retracts)
    lefts = changes_of("l_", left_keys, size, shape.retracts)
    schemas = lefts[0].data.schema, rights[0].data.schema
    kinds = ALL_CHANGES if shape.retracts else INSERT_ONLY
    unique = (((0,),), ((0,), (1,))) if shape.is_unique else ((), ())
    operator = RegularJoinOperator(
        JoinSpec(shape.kind, (1,), (1,)),
        JoinInput(schemas[0], unique[0], kinds),
        JoinInput(schemas[1], unique[1], kinds),
        pa.schema([*schemas[0], *schemas[1]]),
    )
    harness = ChainHarness(linear(operator, inputs=2))
    left, right = harness.chain.batch_inputs()
    given = harness.writers[0].elements
    results, batches = 0, 0
    allocated, began = pa.total_allocated_bytes(), time.process_time()
    for one, other in zip(lefts, rights):
        right(other)
        left(one)
        results += sum(len(each) for each in given if isinstance(each, ColumnBatch))
        batches += 2
        given.clear()
    seconds = time.process_time() - began
    rows = sum(map(len, lefts)) + sum(map(len, rights))
    data = pa.total_allocated_bytes() - allocated
    beside = held_bytes(operator._kept, operator._index, with_data=False)
    kept = operator.entries_held()
    return (
        f"{shape}; batches of {size:,}: {rows / seconds / 1e6:.2f} M rows/s, {results:,} results, "
        f"{data / kept:.0f} B of data and {beside / kept:.0f} B beside it a row"
    )


def main() -> list[Comparison]:
    left = 200_000 if quick() else 1_000_000
    for right in (left // 10, left):
        shapes = [
            Shape(left, right),
            Shape(left, right, JoinKind.LEFT),
            Shape(left, right, retracts=True),
            Shape(left, right, JoinKind.LEFT, retracts=True),
            Shape(left, right, retracts=True, is_unique=False),
        ]
        for shape in shapes:
            for size in (8_192, 65_536):
                print(run(shape, size), flush=True)
    return []  # there is no bare loop that does the same


if __name__ == "__main__":
    main()
