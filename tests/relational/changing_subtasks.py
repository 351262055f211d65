"""Subtasks of an operator of changes: fed with changelogs, stopped and started again with another
parallelism, from their snapshots alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from flinkpy.core.elements import Batch, ColumnBatch
from flinkpy.core.keys import channel_of_key_group
from flinkpy.core.options.checkpointing import CHECKPOINT_INCREMENTAL
from flinkpy.relational.state.rows_by_group import groups_of_rows
from tests.operators.harness import do_all
from tests.operators.in_pieces import InPieces
from tests.operators.joining import MAX_PARALLELISM, Gathered, Subtasks

Change: TypeAlias = "tuple[str, tuple[Any, ...]]"
KINDS = ("+I", "-U", "+U", "-D")
RESTART = "restart"


class GatheredChanges(Gathered):
    """The changes that came out."""

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Change] = []

    def emit(self, batch: Batch) -> None:
        assert isinstance(batch, ColumnBatch)
        assert len(batch)
        kinds = np.zeros(len(batch), np.int8) if batch.kinds is None else batch.kinds
        rows = zip(*(map(shown, column.to_pylist()) for column in batch.data.columns))
        self.changes += zip((KINDS[kind] for kind in kinds.tolist()), rows)


class ChangingSubtasks(Subtasks):
    """Rows of ``schema`` go to subtasks by the columns ``keys``; without keys there is one."""

    output: GatheredChanges

    def __init__(
        self,
        make: Callable[[], Any],
        schema: pa.Schema,
        keys: Sequence[int],
        configuration: dict[str, Any] | None = None,
    ) -> None:
        self._schema = schema
        self._keys = tuple(keys)
        super().__init__(make, configuration=configuration)

    def new_output(self) -> GatheredChanges:
        return GatheredChanges()

    def take(self, changes: Sequence[Change]) -> list[Change]:
        """What comes of one batch of changes."""
        before = len(self.output.changes)
        batch = batch_of(changes, self._schema)
        groups = groups_of_rows(batch.data, self._keys, MAX_PARALLELISM).tolist()
        count = len(self.operators)
        channels = np.array([channel_of_key_group(g, MAX_PARALLELISM, count) for g in groups])
        for channel, operator in enumerate(self.operators):
            mine = np.flatnonzero(channels == channel)
            if len(mine):
                do_all(operator.process_batch(batch.take(mine)))
        return self.output.changes[before:]

    def run_changes(self, changes: Sequence[Change | str], size: int) -> list[Change]:
        """What comes of changes in batches of this size, with restarts between them: from
        checkpoints in pieces, if they are incremental."""
        with TemporaryDirectory() as folder:
            checkpoints = InPieces(self, Path(folder))
            for part in parts_of(changes, size):
                parallelism = 1 if not self._keys else len(self.operators) % 3 + 1
                if part != RESTART:
                    self.take(part)
                elif self._configuration.get(CHECKPOINT_INCREMENTAL.key):
                    checkpoints.take()
                    checkpoints.restart(parallelism)
                else:
                    self.restart(parallelism)
        return self.output.changes


def parts_of(changes: Sequence[Change | str], size: int) -> list[Any]:
    """Batches of at most this size; one ends at a restart."""
    parts: list[Any] = [[]]
    for change in changes:
        if change == RESTART:
            parts += [RESTART, []]
        elif len(parts[-1]) == size:
            parts.append([change])
        else:
            parts[-1].append(change)
    return [part for part in parts if part]


def batch_of(changes: Sequence[Change], schema: pa.Schema) -> ColumnBatch:
    """The changes as columns."""
    columns = list(zip(*(row for _, row in changes)))
    arrays = [pa.array(list(each), field.type) for each, field in zip(columns, schema)]
    kinds = np.array([KINDS.index(kind) for kind, _ in changes], np.int8)
    return ColumnBatch(pa.RecordBatch.from_arrays(arrays, schema=schema), None, kinds)


def folded(changes: Sequence[Change]) -> Counter[tuple[Any, ...]]:
    """The rows that stand after these changes, of which each takes back a row that is there."""
    found: Counter[tuple[Any, ...]] = Counter()
    for kind, row in changes:
        row = tuple(map(shown, row))
        found[row] += 1 if kind in ("+I", "+U") else -1
        assert found[row] >= 0, f"{row} is taken back, and is not there"
    return +found


def folded_by(changes: Sequence[Change], keys: Sequence[int]) -> dict[Any, tuple[Any, ...]]:
    """The row of each key that stands after these changes, of upserts."""
    found: dict[Any, tuple[Any, ...]] = {}
    for kind, row in changes:
        row = tuple(map(shown, row))
        key = tuple(row[at] for at in keys)
        if kind in ("+I", "+U"):
            found[key] = row
        elif kind == "-D":
            del found[key]
    return found


def shown(value: Any) -> Any:
    """NaN as a word, which equals itself."""
    return "NaN" if value != value else value
