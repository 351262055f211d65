"""With one row a batch, changelogs are those that a live Flink 2.3 printed, row for row.

``flink_changelogs.tsv`` has its answers to queries over two tables, a file of JSON and one of
Debezium's changes. Left out are ranks from the second row on over rows that go, without the rank
among the columns: Flink loses rows there, as it marks rows of its state as updated and does not
find them again."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common.changelog_mode import ALL_CHANGES
from flinkpy.relational.ordering.rank_rows import RankSpec
from flinkpy.relational.ranks.changing_rank import ChangingRankOperator, ChangingRankSpec
from flinkpy.relational.ranks.deduplicated_rows import LastRowsOperator
from flinkpy.relational.ranks.normalized_rows import NormalizedRowsOperator
from flinkpy.relational.sinks.materialiser import MaterialiserOperator
from flinkpy.sql.physical.physical_nodes import RankStrategy
from flinkpy.sql.rex.rex_nodes import SortKey
from tests.relational.changing_subtasks import Change, ChangingSubtasks, folded

ROWS = pa.schema([("k", pa.string()), ("id", pa.int64()), ("v", pa.int64())])
TIMED = ROWS.append(pa.field("t", pa.timestamp("ms")))
INSERTED = (
    *[("a", 1, 5, 3), ("a", 2, 7, 1), ("b", 3, 1, 5), ("a", 4, 6, 4), ("a", 5, 7, 4)],
    *[("a", 6, None, 2), ("b", 7, 1, 5), ("b", 8, 0, 6), ("a", 9, 9, 1), ("a", 10, 1, 9)],
    ("b", 11, 5, 2),
)
CHANGED = (
    "+I:a,1,5 +I:a,2,7 +I:a,3,6 -U:a,1,5 +U:a,1,8 +I:a,4,7 -D:a,2,7 +I:b,5,1 +I:b,6,1 -U:b,5,1 "
    "+U:b,5,1 -U:a,1,8 +U:a,1,2 -D:a,3,6 +I:a,7,null -U:a,4,7 +U:b,4,9 -D:a,7,null -D:a,1,2 -D:b,6,1"
)
with (Path(__file__).parent / "flink_changelogs.tsv").open(encoding="utf-8") as file:
    ANSWERS = {each["case"]: each["changes"] for each in csv.DictReader(file, delimiter="\t")}
RANGES = {"top1": (1, 1), "top2": (1, 2), "second to third": (2, 3)}
LIMITS = {"sort limit": (1, 3), "sort offset": (2, 3), "limit": (1, 3), "offset": (2, 3)}
STRATEGIES = {
    "ins": RankStrategy.APPEND,
    "chg": RankStrategy.RETRACT,
    "count": RankStrategy.UPDATE_FAST,
}
FALLING: tuple[SortKey, ...] = (SortKey(2, descending=True, nulls_first=False),)


def changes_of(text: str) -> list[Change]:
    return [
        (each[:2], tuple(map(_value, each[2:].lstrip(":").split(",")))) for each in text.split()
    ]


def _value(text: str) -> Any:
    return None if text == "null" else int(text) if text.isdigit() else text


def counts(*, gives_before: bool = False) -> list[Change]:
    """SELECT k, v, COUNT(*) FROM ins GROUP BY k, v."""
    found: list[Change] = []
    numbers = Counter[Any]()
    for row in INSERTED:
        before = numbers[row[0], row[2]]
        numbers[row[0], row[2]] += 1
        if before and gives_before:
            found.append(("-U", (row[0], row[2], before)))
        found.append(("+U" if before else "+I", (row[0], row[2], before + 1)))
    return found


def input_of(name: str) -> list[Change]:
    if name.startswith("count"):
        return counts()
    if name.startswith("chg"):
        return changes_of(CHANGED)
    return [("+I", row[:3]) for row in INSERTED]


def rank_of(name: str) -> tuple[ChangingRankSpec, pa.Schema]:
    strategy = STRATEGIES[name.split(" ")[0]]
    wanted = name.split(" ", 1)[1]
    partition: tuple[int, ...] = (0,)
    order, gives_rank = FALLING, wanted.endswith(" ranked")
    if wanted in LIMITS:
        partition, (first, last) = (), LIMITS[wanted]
        order = order if wanted.startswith("sort") else ()
    elif wanted == "asc top2":
        first, last, order = 1, 2, (SortKey(2), SortKey(1, descending=True, nulls_first=False))
    else:
        first, last = RANGES[wanted.rsplit(" ", 1)[0]]
    rank = RankSpec("ROW_NUMBER", partition, order, first, last, gives_rank)
    return (
        ChangingRankSpec(rank, strategy, ALL_CHANGES, (0, 1)),
        ROWS.append(pa.field("rn", pa.int64())) if gives_rank else ROWS,
    )


RANKS = [name for name in ANSWERS if name.split(" ")[0] in STRATEGIES]


@pytest.mark.parametrize("name", RANKS)
def test_a_rank_is_flinks_row_for_row(name: str) -> None:
    spec, schema = rank_of(name)
    expected = changes_of(ANSWERS[name])
    for size in (1, 4, 100):
        of = ChangingSubtasks(
            lambda: ChangingRankOperator(spec, ROWS, schema), ROWS, spec.rank.partition
        )
        found = of.run_changes(input_of(name), size)
        if size == 1:
            assert found == expected
        assert folded(found) == folded(expected)


def test_the_last_row_of_a_key_is_flinks_row_for_row() -> None:
    of = ChangingSubtasks(lambda: LastRowsOperator(ROWS, None, (0,), ROWS, ALL_CHANGES), ROWS, (0,))
    assert of.run_changes(input_of("ins"), 1) == changes_of(ANSWERS["last by proctime"])
    timed: list[Any] = [("+I", row) for row in INSERTED]
    of = ChangingSubtasks(lambda: LastRowsOperator(TIMED, 3, (0,), TIMED, ALL_CHANGES), TIMED, (0,))
    found = [(kind, row[:3]) for kind, row in of.run_changes(timed, 1)]
    assert found == changes_of(ANSWERS["last by rowtime"])


def test_upserts_made_whole_are_flinks_row_for_row() -> None:
    of = ChangingSubtasks(lambda: NormalizedRowsOperator(ROWS, (0,), ROWS, ALL_CHANGES), ROWS, (0,))
    # Flink drops rows before updates in front of it
    upserts = [change for change in changes_of(CHANGED) if change[0] != "-U"]
    assert of.run_changes(upserts, 1) == changes_of(ANSWERS["normalize"])


@pytest.mark.parametrize(("name", "key"), [("k", 0), ("v", 2), ("counts", 0)])
def test_what_stands_in_a_sink_is_flinks_row_for_row(name: str, key: int) -> None:
    changes = counts(gives_before=True) if name == "counts" else changes_of(CHANGED)
    if name == "v":
        changes = [change for change in changes if change[1][2] is not None]
    of = ChangingSubtasks(lambda: MaterialiserOperator(ROWS, (key,)), ROWS, (key,))
    assert of.run_changes(changes, 1) == changes_of(ANSWERS[f"materialise {name}"])
