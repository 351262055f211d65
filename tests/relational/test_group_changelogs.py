"""With one row a batch GROUP BY gives the changelog of a live Flink 2.3, row for row.

What Flink gave stands in ``group_changelogs_of_flink.jsonl``, over ``t`` with the rows below, in which no
row is ever changed, and ``u``: SELECT k, LAST_VALUE(v) AS v, LAST_VALUE(d) AS d, ... FROM t GROUP BY
k, in which rows are. A query reads only those columns of ``u`` that it names."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.core.elements import ColumnBatch
from flinkpy.relational.groups.changing_groups import GroupAggregateOperator, GroupSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall
from tests.operators.harness import ChainHarness, linear

Change: TypeAlias = "tuple[int, tuple[Any, ...]]"

MONEY, SUMS = pa.decimal128(10, 2), pa.decimal128(38, 2)
T = pa.schema(
    [("k", pa.string()), ("v", pa.int32()), ("d", pa.float64()), ("c", MONEY), ("s", pa.string())]
)
ROWS: list[tuple[Any, ...]] = [
    ("a", 1, 1.5, Decimal("10.25"), "x"),
    ("b", 2, 2.5, Decimal("20.50"), "x"),
    ("a", 2, 0.25, Decimal("10.75"), "y"),
    ("c", 1, 4.0, Decimal("1.00"), "y"),
    ("b", 3, 8.0, Decimal("2.00"), "y"),
    ("d", None, None, None, None),
    ("c", 3, 1.0, Decimal("1.50"), "x"),
    ("a", 3, 2.0, Decimal("0.25"), "x"),
    ("d", 5, 0.5, Decimal("7.00"), "x"),
    ("b", 1, 16.0, Decimal("3.00"), "x"),
    ("a", 1, 1.25, Decimal("9.25"), "x"),
    ("c", 0, 0.0, Decimal("0.00"), "y"),
    ("a", 0, 0.0, Decimal("0.00"), "x"),
    ("b", 0, 0.0, Decimal("0.00"), "x"),
    ("d", 0, 0.0, Decimal("0.00"), "x"),
]
OF_FLINK = {
    each["sql"]: each["rows"]
    for each in map(
        json.loads,
        (pathlib.Path(__file__).parent / "group_changelogs_of_flink.jsonl")
        .read_text()
        .splitlines(),
    )
}
KINDS = ["+I", "-U", "+U", "-D"]
INT, LONG, FLOAT, TEXT = pa.int32(), pa.int64(), pa.float64(), pa.string()


def grouped(
    changes: Sequence[Change], schema: pa.Schema, keys: Sequence[str], *calls: Any
) -> tuple[list[Change], pa.Schema]:
    """What a GROUP BY gives for these changes, one in a batch. A call is its function, its columns,
    its type, and its options."""
    at = schema.get_field_index
    result = pa.schema(
        [
            *(schema.field(key) for key in keys),
            *((f"{number}", call[2]) for number, call in enumerate(calls)),
        ]
    )
    aggregates = [
        AggregateCall(
            function,
            tuple(map(at, columns)),
            BigIntType(),
            distinct="distinct" in more,
            filter=at(more["filter"]) if "filter" in more else None,
        )
        for function, columns, _, more in (
            (*call, {}) if len(call) == 3 else call for call in calls
        )
    ]
    takes_back = any(kind for kind, _ in changes)
    spec = GroupSpec(tuple(map(at, keys)), tuple(aggregates), takes_back=takes_back)
    operator = GroupAggregateOperator(spec, schema, result)
    harness = ChainHarness(linear(operator))
    for kind, row in changes:
        columns = [pa.array([value], field.type) for value, field in zip(row, schema)]
        data = pa.RecordBatch.from_arrays(columns, schema=schema)
        kinds = np.array([kind], np.int8) if takes_back else None
        harness.chain.batch_inputs()[0](ColumnBatch(data, kinds=kinds))
    return list(_changes(harness.writers[0].elements)), result


def _changes(batches: Sequence[Any]) -> Iterator[Change]:
    for batch in batches:
        kinds = [0] * len(batch) if batch.kinds is None else batch.kinds.tolist()
        yield from zip(kinds, zip(*(column.to_pylist() for column in batch.data.columns)))


def t(keys: Sequence[str], *calls: Any) -> Callable[[], list[Change]]:
    """Over the rows as they are."""
    return lambda: grouped([(0, row) for row in ROWS], T, keys, *calls)[0]


def u(
    reads: str,
    keys: Sequence[str],
    *calls: Any,
    where: Callable[[dict[str, Any]], bool] = lambda row: True,
    **flags: Callable[[dict[str, Any]], Any],
) -> Callable[[], list[Change]]:
    """Over the last values of each k, of the columns that the query reads; ``flags`` are the
    conditions of FILTER, and constants, as columns."""

    def given() -> list[Change]:
        changes, schema = _last_values(reads, where, flags)
        return grouped(changes, schema, keys, *calls)[0]

    return given


def _last_values(
    reads: str,
    where: Callable[[dict[str, Any]], bool] = lambda row: True,
    flags: dict[str, Callable[[dict[str, Any]], Any]] | None = None,
) -> tuple[list[Change], pa.Schema]:
    flags = flags or {}
    last = [("LAST_VALUE", [name], T.field(name).type) for name in reads]
    changes, _ = grouped([(0, row) for row in ROWS], T, ["k"], *last)
    names = ["k", *reads]
    found = []
    for kind, row in changes:
        named = dict(zip(names, row))
        if where(named):
            found.append((kind, (*row, *(flag(named) for flag in flags.values()))))
    fields = [T.field(name) for name in names]
    return found, pa.schema(
        [*fields, *((name, TEXT if name == "separator" else pa.bool_()) for name in flags)]
    )


def _is_above(limit: int) -> Callable[[dict[str, Any]], bool]:
    return lambda row: row["v"] is not None and row["v"] > limit


def _counts_of_counts() -> list[Change]:
    changes, schema = _last_values("v")
    counts, schema = grouped(changes, schema, ["v"], ("COUNT", [], LONG))
    return grouped(counts, schema, ["0"], ("COUNT", [], LONG))[0]


def _more_than_once() -> list[Change]:
    changes, schema = _last_values("v")
    counts, _ = grouped(changes, schema, ["v"], ("COUNT", [], LONG))
    return [(kind, (value,)) for kind, (value, count) in counts if count > 1]


COUNT: Any = ("COUNT", [], LONG)
QUERIES: dict[str, Callable[[], list[Change]]] = {
    "SELECT k, LAST_VALUE(v) AS v, LAST_VALUE(s) AS s FROM t GROUP BY k": t(
        ["k"], ("LAST_VALUE", ["v"], INT), ("LAST_VALUE", ["s"], TEXT)
    ),
    "SELECT k, MAX(v), COUNT(v), COUNT(*) FROM t GROUP BY k": t(
        ["k"], ("MAX", ["v"], INT), ("COUNT", ["v"], LONG), COUNT
    ),
    "SELECT k, MIN(v) FROM t GROUP BY k": t(["k"], ("MIN", ["v"], INT)),
    "SELECT COUNT(*), SUM(v), AVG(d) FROM t": t(
        [], COUNT, ("SUM", ["v"], INT), ("AVG", ["d"], FLOAT)
    ),
    "SELECT v, COUNT(*), SUM(d) FROM u GROUP BY v": u("vd", ["v"], COUNT, ("SUM", ["d"], FLOAT)),
    "SELECT COUNT(*), SUM(v), MIN(v), MAX(v) FROM u": u(
        "v", [], COUNT, ("SUM", ["v"], INT), ("MIN", ["v"], INT), ("MAX", ["v"], INT)
    ),
    "SELECT COUNT(*), SUM(v), MAX(s) FROM u WHERE v > 0": u(
        "vs", [], COUNT, ("SUM", ["v"], INT), ("MAX", ["s"], TEXT), where=_is_above(0)
    ),
    "SELECT s, LISTAGG(k), COUNT(DISTINCT v) FROM t GROUP BY s": t(
        ["s"], ("LISTAGG", ["k"], TEXT), ("COUNT", ["v"], LONG, {"distinct": True})
    ),
    "SELECT s, LISTAGG(k, '|'), ARRAY_AGG(v) FROM u GROUP BY s": u(
        "vs",
        ["s"],
        ("LISTAGG", ["k", "separator"], TEXT),
        ("ARRAY_AGG", ["v"], pa.list_(INT)),
        separator=lambda row: "|",
    ),
    "SELECT s, COUNT(k) FROM u GROUP BY s": u("s", ["s"], ("COUNT", ["k"], LONG)),
    "SELECT SUM(v) FROM u WHERE v > 2": u("v", [], ("SUM", ["v"], INT), where=_is_above(2)),
    "SELECT s, MIN(v), MAX(v), AVG(v) FROM u GROUP BY s": u(
        "vs", ["s"], ("MIN", ["v"], INT), ("MAX", ["v"], INT), ("AVG", ["v"], INT)
    ),
    "SELECT s, COUNT(DISTINCT v), SUM(DISTINCT v) FILTER (WHERE k <> 'a'), COUNT(*) FILTER "
    "(WHERE v > 1) FROM u GROUP BY s": u(
        "vs",
        ["s"],
        ("COUNT", ["v"], LONG, {"distinct": True}),
        ("SUM", ["v"], INT, {"distinct": True, "filter": "other"}),
        ("COUNT", [], LONG, {"filter": "large"}),
        other=lambda row: row["k"] != "a",
        large=_is_above(1),
    ),
    "SELECT s, FIRST_VALUE(v), LAST_VALUE(v) FROM u GROUP BY s": u(
        "vs", ["s"], ("FIRST_VALUE", ["v"], INT), ("LAST_VALUE", ["v"], INT)
    ),
    "SELECT s, SUM(c), AVG(c), MAX(c) FROM u GROUP BY s": u(
        "cs",
        ["s"],
        ("SUM", ["c"], SUMS),
        ("AVG", ["c"], pa.decimal128(38, 6)),
        ("MAX", ["c"], MONEY),
    ),
    "SELECT s, COLLECT(v) FROM u GROUP BY s": u("vs", ["s"], ("COLLECT", ["v"], pa.map_(INT, INT))),
    "SELECT DISTINCT v FROM u": u("v", ["v"]),
    "SELECT v FROM u GROUP BY v HAVING COUNT(*) > 1": _more_than_once,
    "SELECT n, COUNT(*) FROM (SELECT v, COUNT(*) AS n FROM u GROUP BY v) GROUP BY n": (
        _counts_of_counts
    ),
    "SELECT s, SUM(d), AVG(d), MIN(d) FROM u WHERE s IS NOT NULL GROUP BY s": u(
        "ds",
        ["s"],
        ("SUM", ["d"], FLOAT),
        ("AVG", ["d"], FLOAT),
        ("MIN", ["d"], FLOAT),
        where=lambda row: row["s"] is not None,
    ),
}


@pytest.mark.parametrize("sql", QUERIES)
def test_the_changelog_is_that_of_flink(sql: str) -> None:
    given = [[KINDS[kind], *map(_shown, row)] for kind, row in QUERIES[sql]()]
    assert given == OF_FLINK[sql]


def test_variances_are_those_of_flink_but_for_rounding() -> None:
    sql = "SELECT s, STDDEV_POP(d), VAR_SAMP(d) FROM u GROUP BY s"
    calls = [("STDDEV_POP", ["d"], FLOAT), ("VAR_SAMP", ["d"], FLOAT)]
    given = [(KINDS[kind], *row) for kind, row in u("ds", ["s"], *calls)()]
    expected = [
        (kind, key, *(None if each is None else float(each) for each in numbers))
        for kind, key, *numbers in OF_FLINK[sql]
    ]
    assert [row[:2] for row in given] == [row[:2] for row in expected]
    # where all values of x are 0 at last, Flink's deviation is 4e-9: it subtracts squares of sums
    for row, wanted in zip(given, expected):
        assert [each is None for each in row] == [each is None for each in wanted]
        for number, of_flink in zip(row[2:], wanted[2:]):
            assert number is None or number == pytest.approx(of_flink, rel=1e-9, abs=1e-8)


def test_the_rows_are_in_the_order_in_which_flink_read_them() -> None:
    assert [["+I", *map(_shown, row)] for row in ROWS] == OF_FLINK["SELECT * FROM t"]


def test_each_answer_of_flink_is_compared() -> None:
    assert {*OF_FLINK} - {*QUERIES} == {
        "SELECT * FROM t",
        "SELECT s, STDDEV_POP(d), VAR_SAMP(d) FROM u GROUP BY s",
    }


def _shown(value: Any) -> str | None:
    """A value as Java writes it."""
    if isinstance(value, list) and (not value or isinstance(value[0], tuple)):  # of COLLECT
        return "{" + ", ".join(f"{key}={count}" for key, count in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ", ".join("null" if each is None else str(each) for each in value) + "]"
    return None if value is None else str(value)
