"""A savepoint of a join in the canonical form: others read its rows in typed columns, and the join
goes on from it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flinkpy.common.types import RowKind
from flinkpy.core.ids import JobId, OperatorId
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.state.canonical.canonical_reader import read_canonical
from flinkpy.state.canonical.canonical_writer import Place, write_canonical
from flinkpy.state.checkpoints.checkpoint_storage import FileCheckpointStorage
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.joining import BARRIER, MAX_PARALLELISM
from tests.relational.test_regular_join import LAYOUTS, SubtasksOfChanges, in_memory, operator_for

ROWS = [(float(at % 7), at % 4, at % 3) for at in range(60)]


def saved_by(of: SubtasksOfChanges, folder: Path) -> list[SavedState]:
    """What the subtasks have written as files, and what is read of these."""
    storage = FileCheckpointStorage(str(folder), JobId("job"))
    found = []
    for index, operator in enumerate(of.operators):
        place = Place(OperatorId("join"), "join", f"{index}-0")
        with storage.state_writer(1, f"join-{index}", 0) as writer:
            state = write_canonical(writer, operator.freeze_state(BARRIER), place)
        [checkpoint] = folder.rglob("chk-1")
        reader = storage.reader(str(checkpoint))
        groups = range(MAX_PARALLELISM)
        found.append(read_canonical(state.tables, reader.read, MAX_PARALLELISM, groups))
    return found


@pytest.mark.parametrize("memory", [None, "0 b"])
def test_a_savepoint_of_a_join_has_its_rows_in_typed_columns(
    memory: str | None, tmp_path: Path
) -> None:
    layouts = [LAYOUTS["any rows"], LAYOUTS["rows that only come"]]
    of = SubtasksOfChanges(
        operator_for(JoinKind.LEFT, layouts, ttl=(60_000, 0)), 2, configuration=in_memory(memory)
    )
    of.push_changes(0, [(RowKind.INSERT, row) for row in ROWS])
    of.push_changes(1, [(RowKind.INSERT, (1.0, 9, 9))])
    saved = saved_by(of, tmp_path)
    tables = [pq.read_table(each) for each in sorted(tmp_path.rglob("join-*.left.*.parquet"))]
    assert tables[0].schema.remove_metadata() == pa.schema(
        [
            pa.field("key_group", pa.int32(), nullable=False),
            pa.field("$key", pa.int64(), nullable=False),
            pa.field("k", pa.float64()),
            pa.field("id", pa.int64()),
            pa.field("v", pa.int64()),
            pa.field("$partners", pa.int64()),
            pa.field("$written", pa.int64()),
            pa.field("$copies", pa.int64()),
        ]
    )
    kept = pa.concat_tables(tables).to_pylist()
    copies = Counter({(each["k"], each["id"], each["v"]): each["$copies"] for each in kept})
    assert copies == Counter(ROWS)
    assert {each["k"]: each["$partners"] for each in kept} == {
        float(key): int(key == 1) for key in range(7)
    }
    of.close()
    of.start(3, saved)
    found = of.push_changes(0, [(RowKind.DELETE, row) for row in ROWS])
    assert Counter(row for kind, row in found if kind is RowKind.DELETE) == Counter(
        (*row, *((1.0, 9, 9) if row[0] == 1 else (None, None, None))) for row in ROWS
    )
