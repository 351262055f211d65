"""Rows gather while more of them come, and no longer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.core.elements import CheckpointBarrier, ColumnBatch, Watermark, WatermarkStatus
from flinkpy.relational.row_by_row.gathered_rows import GatherRowsOperator
from tests.operators.harness import ChainHarness, linear

SCHEMA = pa.schema([("k", pa.string()), ("n", pa.int64())])


def batch(*rows: tuple[str, int], kinds: list[int] | None = None) -> ColumnBatch:
    columns = [pa.array(each, field.type) for each, field in zip(zip(*rows), SCHEMA)]
    data = pa.RecordBatch.from_arrays(columns, schema=SCHEMA)
    return ColumnBatch(data, None, None if kinds is None else np.array(kinds, np.int8))


class Gathering:
    def __init__(self) -> None:
        self.harness = ChainHarness(linear(GatherRowsOperator(1000, 5, SCHEMA)))

    def push(self, *batches: ColumnBatch) -> None:
        for each in batches:
            self.harness.chain.batch_inputs()[0](each)

    @property
    def elements(self) -> list[Any]:
        """What went on."""
        return list(self.harness.writers[0].elements)

    def sizes(self) -> list[int]:
        """Of the batches that went on."""
        return [len(each) for each in self.elements if isinstance(each, ColumnBatch)]


def test_so_many_rows_become_one_batch_with_their_kinds() -> None:
    gathering = Gathering()
    gathering.push(batch(("a", 1), ("b", 2)), batch(("a", 1), kinds=[3]), batch(("c", 3)))
    assert gathering.sizes() == []
    gathering.push(batch(("d", 4)))
    [found] = gathering.elements
    assert found.data.column(1).to_pylist() == [1, 2, 1, 3, 4]
    assert found.kinds.tolist() == [0, 0, 3, 0, 0]


def test_rows_wait_no_longer_than_said_while_more_come() -> None:
    gathering = Gathering()
    gathering.push(batch(("a", 1)))
    gathering.harness.timers.clock.advance(0.5)
    gathering.push(batch(("b", 2)))
    gathering.harness.timers.clock.advance(0.5)
    assert gathering.sizes() == []
    gathering.push(batch(("c", 3)))
    assert gathering.sizes() == [3]


@pytest.mark.parametrize(
    "event",
    [
        lambda chain: chain.input_pauses(),
        lambda chain: chain.control(Watermark(7)),
        lambda chain: chain.control(WatermarkStatus(idle=True)),
        lambda chain: chain.process_barrier(CheckpointBarrier(1, 0), lambda barrier: None),
        lambda chain: chain.finish(),
    ],
    ids=["no input", "watermark", "idle", "checkpoint", "end"],
)
def test_rows_do_not_wait_at(event: Callable[[Any], object]) -> None:
    gathering = Gathering()
    gathering.push(batch(("a", 1)), batch(("b", 2)))
    event(gathering.harness.chain)
    assert gathering.sizes() == [2]
    assert isinstance(gathering.elements[0], ColumnBatch)  # before a watermark, or a barrier


def test_columns_that_are_encoded_in_some_batches_gather() -> None:
    gathering = Gathering()
    encoded = pa.array(["x", "x"]).dictionary_encode()
    data = pa.RecordBatch.from_arrays([encoded, pa.array([1, 2])], names=["k", "n"])
    gathering.push(ColumnBatch(data), batch(("y", 3)))
    gathering.harness.chain.input_pauses()
    assert gathering.elements[0].data.to_pydict() == {"k": ["x", "x", "y"], "n": [1, 2, 3]}
