"""What finds the rows of operators of tables takes no more memory than its share."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.options.state import COLUMNS_MEMORY
from flinkpy.operators.base import StreamOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.joins.kept_rows import JoinInput
from flinkpy.relational.joins.regular_join import RegularJoinOperator
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator, ChangingRankSpec
from flinkpy.relational.sinks.materialiser import MaterialiserOperator
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.sql.rex.relational_terms import JoinKind
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.operators.harness import ChainHarness, linear

ROWS, BATCH = 160_000, 8_192
SCHEMA = pa.schema([("key", pa.int64()), ("n", pa.int64()), ("name", pa.string())])


def join(left: JoinInput) -> RegularJoinOperator:
    names = [pa.field(f"r_{field.name}", field.type) for field in SCHEMA]
    schema = pa.schema([*SCHEMA, *names])
    spec = JoinSpec(JoinKind.LEFT, (0,), (0,))
    return RegularJoinOperator(spec, left, JoinInput(SCHEMA), schema)


def rank(strategy: RankStrategy) -> ChangingRankOperator:
    best = RankSpec("ROW_NUMBER", (0,), (SortKey(1),), 1, 2, False)
    spec = ChangingRankSpec(best, strategy, ALL_CHANGES, upsert_key=(0, 1))
    return ChangingRankOperator(spec, SCHEMA, SCHEMA)


OPERATORS: dict[str, Callable[[], StreamOperator]] = {
    "join of rows that are added": lambda: join(JoinInput(SCHEMA, (), INSERT_ONLY)),
    "join of rows that change": lambda: join(JoinInput(SCHEMA)),
    "join of rows with a key": lambda: join(JoinInput(SCHEMA, ((0,),))),
    "join of rows with another key": lambda: join(JoinInput(SCHEMA, ((1, 2),))),
    "join of rows that live for a time": lambda: join(JoinInput(SCHEMA, (), ALL_CHANGES, 10**9)),
    "rank of rows that change": lambda: rank(RankStrategy.RETRACT),
    "rank of rows that are replaced": lambda: rank(RankStrategy.UPDATE_FAST),
    "sink with a key": lambda: MaterialiserOperator(SCHEMA, (0,)),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_what_finds_rows_takes_no_more_memory_than_its_share(name: str) -> None:
    operator = OPERATORS[name]()
    inputs = 2 if isinstance(operator, RegularJoinOperator) else 1
    harness = ChainHarness(
        linear(operator, inputs=inputs), configuration={COLUMNS_MEMORY.key: 1 << 20}
    )
    push = harness.chain.batch_inputs()[0]
    taken = 0
    try:
        for begin in range(0, ROWS, BATCH):
            if begin == BATCH:  # modules are there
                tracemalloc.start()
            numbers = np.arange(begin, begin + BATCH)
            texts = pa.array(numbers).cast(pa.string())
            push(ColumnBatch(pa.record_batch([numbers * 7_919, numbers, texts], SCHEMA)))
            harness.writers[0].elements.clear()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert operator.entries_held() >= ROWS  # type: ignore[attr-defined]
    assert taken < 4 << 20, f"{taken / ROWS:.0f} bytes a row"
