"""The joins' state: memory of a side of 10^7 rows beside its data, with all rows in memory and with
a tenth of them, and what a checkpoint costs after one row in a hundred was touched.

    python -m benchmarks join_state [--quick]

Each side has five columns, one of them text, and no unique key; ten rows have one join key. Each
measurement has a process of its own, because a process does not return freed memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import Comparison, quick
from benchmarks.regular_joins import rows_of
from benchmarks.state_memory import resident
from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.core.elements import CheckpointBarrier, ColumnBatch
from flinkpy.core.ids import JobId
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.core.options.state import COLUMNS_MEMORY
from flinkpy.operators.spilling.held_bytes import held_bytes
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.snapshots.saved_state import FrozenInPieces
from tests.operators.harness import ChainHarness, linear

BATCH = 8_192
TARGET = 60  # bytes a row
_SPARSE = 7_919  # keys are not small
_DATA = 42  # bytes of a row


class Side:
    """A join whose left side grows and changes; nothing comes from the right."""

    def __init__(self, rows: int, rows_of_key: int, memory: int | None) -> None:
        self.keys = rows // rows_of_key
        self.chance = np.random.default_rng(7)
        left, right = (rows_of(each, np.arange(1), np.arange(1), self.chance) for each in "lr")
        self.operator = RegularJoinOperator(
            JoinSpec(JoinKind.LEFT, (1,), (1,)),
            JoinInput(left.schema, (), ALL_CHANGES),
            JoinInput(right.schema, (), ALL_CHANGES),
            pa.schema([*left.schema, *right.schema]),
        )
        options: dict[str, Any] = {CHECKPOINT_INCREMENTAL.key: True}
        if memory is not None:
            options[COLUMNS_MEMORY.key] = memory
        self.harness = ChainHarness(linear(self.operator, inputs=2), configuration=options)
        self._push, self._push_other = self.harness.chain.batch_inputs()

    def rows(self, ids: Any) -> pa.RecordBatch:
        """Rows that can be made again: all of them depends on the id."""
        chance = np.random.default_rng(int(ids[0]))
        return rows_of("l_", ids, ids % self.keys * _SPARSE, chance)

    def push(self, data: pa.RecordBatch, kinds: Any = None) -> None:
        self._push(ColumnBatch(data, None, kinds))
        self.harness.writers[0].elements.clear()

    def fill(self, rows: int) -> float:
        """Adds so many rows; gives the seconds of the processor that it took."""
        took = 0.0
        for begin in range(0, rows, BATCH):
            data = self.rows(np.arange(begin, min(begin + BATCH, rows)))
            began = time.process_time()
            self.push(data)
            took += time.process_time() - began
        return took

    def touch(self, rows: int, share: float, skipped: int = 0) -> int:
        """Takes back and replaces some rows in all parts of the state; gives how many."""
        starts = np.arange(0, rows - BATCH + 1, BATCH)
        some = max(1, int(BATCH * share))
        for start in starts.tolist():
            self._touch_batch(start, skipped, some)
        return some * len(starts)

    def probe(self, batches: int = 12) -> float:
        """Rows of the right, each of a key drawn at random; gives pairs a second of the
        processor."""
        pairs, took = 0, 0.0
        for begin in range(0, 2_048 * batches, 2_048):
            keys = self.chance.integers(0, self.keys, 2_048) * _SPARSE
            data = rows_of("r_", np.arange(begin, begin + 2_048), keys, self.chance)
            began = time.process_time()
            self._push_other(ColumnBatch(data, None, None))
            took += time.process_time() - began
            given = self.harness.writers[0].elements
            pairs += sum(len(each) for each in given if isinstance(each, ColumnBatch))
            given.clear()
        return pairs / took

    def _touch_batch(self, start: int, skipped: int, some: int) -> None:
        """Takes back rows of a batch, and adds others."""
        old = self.rows(np.arange(start, start + BATCH)).slice(skipped, some)
        new = old.set_column(4, old.schema.field(4), pa.array(np.full(some, -1)))
        kinds = np.repeat(np.array([3, 0], np.int8), some)
        self.push(pa.concat_batches([old, new]), kinds)


def measure(rows: int, rows_of_key: int, memory: int | None) -> dict[str, float]:
    """Fills a side, and touches a hundredth of it."""
    warm = Side(BATCH, 1, None)
    warm.fill(BATCH)
    before, arrow = resident(), pa.total_allocated_bytes()
    side = Side(rows, rows_of_key, memory)
    began = time.perf_counter()
    filled = side.fill(rows)
    wall = time.perf_counter() - began
    pa.default_memory_pool().release_unused()
    kept = side.operator.entries_held()
    data = pa.total_allocated_bytes() - arrow
    beside = held_bytes(side.operator._kept, side.operator._index, with_data=False)
    found = {
        "rows": kept,
        "rows_a_second": kept / filled,
        "rows_a_second_of_wall": kept / wall,
        "arrays": beside / kept,
        "data": data / kept,
        "resident_beside_data": (resident() - before - data) / kept,
    }
    began_cpu = time.process_time()
    found["touched"] = touched = side.touch(rows, 0.01)
    found["touched_a_second"] = 2 * touched / (time.process_time() - began_cpu)
    found |= checkpoints(side, rows)
    found["pairs_a_second"] = side.probe()
    return found


def checkpoints(side: Side, rows: int) -> dict[str, float]:
    """A first checkpoint, one after a hundredth of the rows was touched again, and the pauses of
    some more; in milliseconds of the processor, as other processes disturb the clock's."""
    with tempfile.TemporaryDirectory() as folder:
        storage, base, known = FileCheckpointStorage(folder, JobId("job")), None, set[Any]()
        found, pauses = dict[str, float](), list[float]()
        for number, share in enumerate([0, 0.01, *[0.0005] * 8]):
            if share:
                side.touch(rows, share, 100 * number)
            began = time.process_time()
            frozen = side.operator.freeze_state(CheckpointBarrier(number, 0)).keyed
            pauses.append(1000 * (time.process_time() - began))
            if number > 1:
                continue
            assert isinstance(frozen, FrozenInPieces)
            began = time.process_time()
            with storage.state_writer(number, "0a-0", 0) as writer:
                _, base = frozen.write_pieces(base, writer)
            handles = set(base.pieces.values())
            found[f"written {number}"] = sum(each.length for each in handles - known)
            found[f"writing {number}"] = time.process_time() - began
            known |= handles
    found |= {"pause": sorted(pauses)[len(pauses) // 2], "longest_pause": max(pauses)}
    return found


def in_a_process(rows: int, rows_of_key: int, memory: int | None) -> dict[str, float]:
    code = (
        "import json; from benchmarks.join_state import measure; "
        f"print(json.dumps(measure({rows}, {rows_of_key}, {memory})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> list[Comparison]:
    rows = 200_000 if quick() else 10_000_000
    found = []
    for rows_of_key in (10, 1):
        told = in_a_process(rows, rows_of_key, None)
        print(
            f"{rows:,} rows, {rows_of_key} of a key: {told['rows_a_second'] / 1e6:.2f} M rows/s, "
            f"{told['data']:.0f} B of data a row, {told['arrays']:.0f} B of arrays beside it, "
            f"{told['resident_beside_data']:.0f} B resident; a checkpoint after 1 % was touched "
            f"writes {told['written 1'] / told['written 0']:.1%} of all, the operator stands still "
            f"for {told['pause']:.1f} ms, {told['longest_pause']:.1f} ms at most",
            flush=True,
        )
        found.append(
            Comparison(
                f"the joins' state, {rows_of_key} rows of a key: bytes beside data, at most",
                "B a row",
                TARGET,
                told["resident_beside_data"],
                TARGET / told["resident_beside_data"],
                target=1.0,
            )
        )
    found.append(with_a_tenth(rows // 5))
    return found


def with_a_tenth(rows: int) -> Comparison:
    """Pairs a second that the right side finds, in memory for a tenth of the left side's data. The
    system may keep the files in memory, as far as it has some."""
    rates = [
        in_a_process(rows, 10, memory)["pairs_a_second"] for memory in (None, rows * _DATA // 10)
    ]
    return Comparison(
        "a join, rows for a tenth in memory v all",
        "pairs/s",
        rates[1],
        rates[0],
        rates[1] / rates[0],
        target=0.3,
    )


if __name__ == "__main__":
    main()
