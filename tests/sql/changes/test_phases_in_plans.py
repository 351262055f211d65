"""Aggregates in two phases: where they stand in plans, and how ``explain`` shows them, beside what
Flink 2.3 shows of the same statements (but for the words _RETRACT, which ours leaves out)."""

from __future__ import annotations

import re

import pytest

from flinkpy.sql.plans.physical_text import physical_text
from flinkpy.sql.sql_errors import ValidationError
from tests.sql.changes.changing_tables import changing_session

MINI_BATCH = {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "100",
}
OF_FLINK = {
    "SELECT id, COUNT(*) AS n, SUM(price) AS s, AVG(price) AS a, MIN(price) AS lo, "
    "MAX(product) AS hi FROM items GROUP BY id": """
GlobalGroupAggregate(groupBy=[id], select=[id, COUNT(count1$0) AS n, SUM(sum$1) AS s, AVG((sum$2, count$3)) AS a, MIN(min$4) AS lo, MAX(max$5) AS hi])
LocalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS count1$0, SUM(price) AS sum$1, AVG(price) AS (sum$2, count$3), MIN(price) AS min$4, MAX(product) AS max$5])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT id, COUNT(DISTINCT price) AS n, SUM(DISTINCT price) AS m, COUNT(DISTINCT product) AS f "
    "FROM items GROUP BY id": """
GlobalGroupAggregate(groupBy=[id], select=[id, COUNT(distinct$0 count$0) AS n, SUM(distinct$0 sum$1) AS m, COUNT(distinct$1 count$2) AS f])
LocalGroupAggregate(groupBy=[id], select=[id, COUNT(distinct$0 price) AS count$0, SUM(distinct$0 price) AS sum$1, COUNT(distinct$1 product) AS count$2, DISTINCT(price) AS distinct$0, DISTINCT(product) AS distinct$1])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT n, COUNT(DISTINCT id) AS m FROM (SELECT id, COUNT(*) AS n FROM items GROUP BY id) "
    "GROUP BY n": """
GlobalGroupAggregate(groupBy=[n], select=[n, COUNT(distinct$0 count$0) AS m])
LocalGroupAggregate(groupBy=[n], select=[n, COUNT(distinct$0 id) AS count$0, COUNT(*) AS count1$1, DISTINCT(id) AS distinct$0])
GlobalGroupAggregate(groupBy=[id], select=[id, COUNT(count1$0) AS n])
LocalGroupAggregate(groupBy=[id], select=[id, COUNT(*) AS count1$0])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT id, LISTAGG(product) AS l FROM items GROUP BY id": """
GlobalGroupAggregate(groupBy=[id], select=[id, LISTAGG((accDelimiter$0, concatAcc$1)) AS l])
LocalGroupAggregate(groupBy=[id], select=[id, LISTAGG(product) AS (accDelimiter$0, concatAcc$1)])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT DISTINCT product FROM items": """
GlobalGroupAggregate(groupBy=[product], select=[product])
LocalGroupAggregate(groupBy=[product], select=[product])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT id, FIRST_VALUE(price) AS f FROM items GROUP BY id": """
GroupAggregate(groupBy=[id], select=[id, FIRST_VALUE(price) AS f])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])""",
    "SELECT id, price FROM items": "",
}
SPLIT = MINI_BATCH | {"table.optimizer.distinct-agg.split.enabled": "true"}
# Flink puts the two in the middle into one operator, IncrementalGroupAggregate, unless
# table.optimizer.incremental-agg-enabled is false
SPLIT_OF_FLINK = """
GlobalGroupAggregate(groupBy=[id], partialFinalType=[FINAL], select=[id, $SUM0(sum$0), SUM(sum$1)])
LocalGroupAggregate(groupBy=[id], partialFinalType=[FINAL], select=[id, $SUM0(EXPR$0) AS sum$0, SUM(EXPR$1) AS sum$1, COUNT(*) AS count1$2])
GlobalGroupAggregate(groupBy=[id, $f2], partialFinalType=[PARTIAL], select=[id, $f2, COUNT(distinct$0 count$0), SUM(sum$1)])
LocalGroupAggregate(groupBy=[id, $f2], partialFinalType=[PARTIAL], select=[id, $f2, COUNT(distinct$0 price) AS count$0, SUM(price) AS sum$1, DISTINCT(price) AS distinct$0])
Calc(select=[id, price, MOD(HASH_CODE(price), 1024) AS $f2])
MiniBatchAssigner(interval=[1000ms], mode=[ProcTime])"""
_SHOWN = ("HASH_CODE", "GroupAggregate(", "MiniBatchAssigner(")


def aggregates(statement: str, options: dict[str, str]) -> list[str]:
    """The lines of the plan that say what is aggregated, and where rows gather."""
    plan = changing_session(options).plan(statement)
    lines = [line.lstrip(" +-:|") for line in physical_text(plan.physical).splitlines()]
    return [_unnamed(line) for line in lines if any(word in line for word in _SHOWN)]


def _unnamed(line: str) -> str:
    """Results are named in a Calc of ours, so aggregates have other names."""
    return re.sub(r" AS (EXPR\$\d+|[a-z]|lo|hi)(?=[,\]])", "", line)


@pytest.mark.parametrize("statement", OF_FLINK)
def test_phases_are_shown_as_flink_shows_them(statement: str) -> None:
    assert aggregates(statement, MINI_BATCH) == [
        *map(_unnamed, OF_FLINK[statement].split("\n")[1:])
    ]


def test_there_is_one_phase_without_mini_batches_and_where_it_is_wanted() -> None:
    statement = "SELECT id, COUNT(*) AS n FROM items GROUP BY id"
    whole = "GroupAggregate(groupBy=[id], select=[id, COUNT(*)])"
    two_phase = {"table.optimizer.agg-phase-strategy": "TWO_PHASE"}
    assert aggregates(statement, two_phase) == [whole]
    one_phase = {"table.optimizer.agg-phase-strategy": "ONE_PHASE"}
    assert aggregates(statement, MINI_BATCH | one_phase)[0] == whole


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("allow-latency", "MiniBatch Latency must be greater than 0 ms"),
        ("size", "Key: 'table.exec.mini-batch.size' must be > 0"),
    ],
)
def test_mini_batches_of_nothing_are_refused(missing: str, words: str) -> None:
    options = {key: value for key, value in MINI_BATCH.items() if not key.endswith(missing)}
    with pytest.raises(ValidationError, match=words):
        aggregates("SELECT DISTINCT product FROM items", options)


def test_distinct_values_are_split_as_flink_splits_them() -> None:
    statement = "SELECT id, COUNT(DISTINCT price) AS n, SUM(price) AS s FROM items GROUP BY id"
    assert aggregates(statement, SPLIT) == SPLIT_OF_FLINK.split("\n")[1:]
    assert aggregates(statement, SPLIT | {"table.exec.mini-batch.enabled": "false"}) == [
        "GroupAggregate(groupBy=[id], select=[id, COUNT(DISTINCT price), SUM(price)])"
    ]
    other = "SELECT id, COUNT(DISTINCT price), STDDEV_POP(price) FROM items GROUP BY id"
    assert not any("FINAL" in line for line in aggregates(other, SPLIT))
