"""JOIN ... FOR SYSTEM_TIME AS OF a time of processing, in statements."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import FlinkpyError
from flinkpy.table import EnvironmentSettings, Schema, TableDescriptor, TableEnvironment
from flinkpy.testing.tables import register_rows

INSERT, BEFORE, AFTER, DELETE = RowKind
ORDERS = [(number, number % 4 or None, f"s{number}") for number in range(1, 7)]
CITIES = [(1, "Oslo", 5), (2, "Rome", 9), (2, "Roma", 1)]
CITY = Schema.new_builder().column("id", "INT").column("name", "STRING").column("n", "INT").build()
met: dict[str, int] = {}


def cities(id: int) -> Any:
    """Nothing, a row, or several."""
    if id == 2:
        return [row for row in CITIES if row[0] == 2]
    return {"name": "Oslo", "id": 1, "n": 5} if id == 1 else None


async def slow_cities(id: int) -> Any:
    """Answers when as many keys are asked, each in a batch of its own, as ``met`` says."""
    met["now"] = met.get("now", 0) + 1
    while met["now"] < met.get("wanted", 0):
        await asyncio.sleep(0)
    return cities(id)


def tables_of(folder: Path, *, is_batch: bool = False) -> TableEnvironment:
    mode = EnvironmentSettings.in_batch_mode if is_batch else EnvironmentSettings.in_streaming_mode
    tables = TableEnvironment.create(mode())
    rows = "'connector' = 'values', 'bounded' = 'true', 'data-id' ="
    tables.execute_sql(
        "CREATE TABLE o (id BIGINT, city INT, s STRING, ts AS TIMESTAMP '2026-01-01 00:00:00', "
        "pt AS PROCTIME(), WATERMARK FOR ts AS ts) "
        f"WITH ({rows} '{register_rows(ORDERS)}', 'rows-per-batch' = '1')"
    )
    columns = "(id INT, name STRING, n INT)"
    known = register_rows(CITIES)
    tables.execute_sql(f"CREATE TABLE v {columns} WITH ({rows} '{known}')")
    tables.execute_sql(
        f"CREATE TABLE v_later {columns} WITH ({rows} '{known}', 'async' = 'true', "
        "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.max-rows' = '1')"
    )
    tables.execute_sql(
        f"CREATE TABLE v_not {columns} WITH ({rows} '{known}', 'disable-lookup' = 'true')"
    )
    (folder / "cities.csv").write_text("".join(f"{a},{b},{c}\n" for a, b, c in CITIES))
    tables.execute_sql(
        f"CREATE TABLE f {columns} WITH ('connector' = 'filesystem', 'format' = 'csv', "
        f"'path' = '{folder}')"
    )
    tables.execute_sql("CREATE VIEW big AS SELECT id, UPPER(name) AS name FROM f WHERE n > 1")
    for name, function in (("p", cities), ("p_later", slow_cities)):
        described = TableDescriptor.for_lookup(function).schema(CITY)
        tables.create_temporary_table(name, described.build())
    return tables


EVERY_TABLE = ("v", "v_later", "f", "p", "p_later")
AS_OF = "FOR SYSTEM_TIME AS OF o.pt AS c"
JOINS = {
    f"SELECT o.id, c.name FROM o JOIN {{}} {AS_OF} ON o.city = c.id": [
        *[(1, "Oslo"), (2, "Rome"), (2, "Roma"), (5, "Oslo"), (6, "Rome"), (6, "Roma")]
    ],
    f"SELECT o.id, c.name FROM o LEFT JOIN {{}} {AS_OF} ON o.city = c.id AND c.n > 5": [
        *[(1, None), (2, "Rome"), (3, None), (4, None), (5, None), (6, "Rome")]
    ],
    f"SELECT o.id FROM o JOIN {{}} {AS_OF} ON c.id = MOD(o.id, 4) AND c.n < o.id WHERE c.n = 1": [
        *[(2,), (6,)]
    ],
    f"SELECT o.id, c.n FROM o LEFT JOIN {{}} {AS_OF} ON c.id = 1 AND c.name = o.s || 'x'": [
        *[(number, None) for number in range(1, 7)]
    ],
    f"SELECT COUNT(*), c.name FROM o JOIN {{}} {AS_OF} ON c.id = o.city GROUP BY c.name "
    "HAVING c.name = 'Roma'": [(2, "Roma")],
}


def rows_left(tables: TableEnvironment, statement: str) -> list[tuple[Any, ...]]:
    left: list[tuple[Any, ...]] = []
    with tables.execute_sql(statement).collect() as rows:
        for row in rows:
            adds = row.get_row_kind() in (INSERT, AFTER)
            left.append(tuple(row)) if adds else left.remove(tuple(row))
    return left


@pytest.mark.parametrize("is_batch", [False, True], ids=["STREAMING", "BATCH"])
def test_every_table_that_is_looked_up_gives_the_rows_of_a_key(
    is_batch: bool, tmp_path: Path
) -> None:
    met.clear()
    tables = tables_of(tmp_path, is_batch=is_batch)
    places = [(name, at) for at, name in enumerate(EVERY_TABLE)]
    for number, (statement, expected) in enumerate(JOINS.items()):
        for name, at in places:
            if number == 0 or number % len(places) == at:
                assert rows_left(tables, statement.format(name)) == expected, (name, statement)
    statement = f"SELECT id, c.name FROM o JOIN big {AS_OF} USING (id)"
    assert rows_left(tables, statement) == [(1, "OSLO"), (2, "ROME")]


def test_keys_of_several_batches_are_asked_at_once(tmp_path: Path) -> None:
    met.update(now=0, wanted=5)  # one of the rows has no city
    tables = tables_of(tmp_path)
    statement = (
        "SELECT /*+ LOOKUP('table'='c', 'async'='true', 'timeout'='20 s') */ o.id, c.name "
        f"FROM o LEFT JOIN p_later {AS_OF} ON o.city = c.id"
    )
    found = [row[0] for row in rows_left(tables, statement)]
    assert found == [1, 2, 2, 3, 4, 5, 6, 6]


def test_rows_that_change_keep_their_kinds(tmp_path: Path) -> None:
    tables = tables_of(tmp_path)
    _ = Row.of_kind
    changes = [_(INSERT, 1, 1), _(BEFORE, 1, 1), _(AFTER, 1, 2), _(DELETE, 1, 2)]
    tables.execute_sql(
        "CREATE TABLE changing (id INT, city INT, pt AS PROCTIME()) WITH ('connector' = 'values', "
        f"'bounded' = 'true', 'changelog-mode' = 'I,UB,UA,D', 'data-id' = '{register_rows(changes)}')"
    )
    statement = (
        "SELECT o.id, c.name FROM changing AS o JOIN f FOR SYSTEM_TIME AS OF o.pt AS c "
        "ON o.city = c.id"
    )
    with tables.execute_sql(statement).collect() as rows:
        found = [(row.get_row_kind(), *row) for row in rows]
    assert found == [
        *[(INSERT, 1, "Oslo"), (BEFORE, 1, "Oslo")],
        *[(AFTER, 1, "Rome"), (AFTER, 1, "Roma"), (DELETE, 1, "Rome"), (DELETE, 1, "Roma")],
    ]
    tables.get_config().set("table.optimizer.non-deterministic-update.strategy", "TRY_RESOLVE")
    with pytest.raises(FlinkpyError, match=r"may find another row when a row is taken back"):
        tables.explain_sql(statement)


def test_explain_shows_what_is_asked(tmp_path: Path) -> None:
    tables = tables_of(tmp_path)
    plan = tables.explain_sql(
        f"SELECT o.id, c.name FROM o LEFT JOIN big {AS_OF} "
        "ON o.city = c.id AND c.name <> o.s AND c.id = 7"
    )
    assert (
        "LookupJoin(table=[default_catalog.default_database.f], joinType=[LeftOuterJoin], "
        "lookup=[id=city], where=[(n > 1)], joinCondition=[((name <> s) AND (id0 = 7))], "
        "select=[id, city, s, pt, id AS id0, UPPER(name) AS name])"
    ) in plan
    assert "LogicalTemporalJoin(period=[pt], condition=[" in plan


WRONG = {
    f"SELECT 1 FROM o JOIN v_not {AS_OF} ON o.city = c.id": (
        "Processing-time temporal join is not supported yet: table .*v_not.* cannot be looked up"
    ),
    f"SELECT 1 FROM o JOIN (SELECT id FROM v) {AS_OF} ON o.city = c.id": "SYSTEM_TIME|FOR",
    f"SELECT 1 FROM o JOIN f {AS_OF} ON o.city > c.id": (
        r"Temporal table join requires an equality condition on fields of table \[default_catalog"
    ),
    f"SELECT 1 FROM o RIGHT JOIN f {AS_OF} ON o.city = c.id": (
        "only support INNER JOIN and LEFT JOIN, but was RIGHT JOIN"
    ),
    "SELECT 1 FROM o JOIN f FOR SYSTEM_TIME AS OF PROCTIME() AS c ON o.city = c.id": (
        "only supports 'FOR SYSTEM_TIME AS OF' left table's time attribute field"
    ),
    "SELECT 1 FROM o FOR SYSTEM_TIME AS OF TIMESTAMP '2020-01-01 00:00:00'": (
        "FOR SYSTEM_TIME AS OF stands behind JOIN"
    ),
    "SELECT * FROM p": "can only be looked up: JOIN it FOR SYSTEM_TIME AS OF",
    f"SELECT 1 FROM o JOIN p {AS_OF} ON o.s = c.name": (
        r"takes \(id: .*missing a required argument: 'id'"
    ),
    f"SELECT /*+ LOOKUP('table'='x') */ 1 FROM o JOIN p {AS_OF} ON o.city = c.id": (
        "options of hint LOOKUP cannot match the name of input tables or views: 'x'"
    ),
    f"SELECT /*+ LOOKUP('async'='true') */ 1 FROM o JOIN p {AS_OF} ON o.city = c.id": (
        "Invalid LOOKUP hint, the option 'table' is missing"
    ),
    f"SELECT /*+ LOOKUP('table'='c', 'capacity'='0') */ 1 FROM o JOIN p_later {AS_OF} "
    "ON o.city = c.id": "'capacity'='0': it is a number from 1 on",
}


def test_what_cannot_be_looked_up_is_refused_in_flinks_words(tmp_path: Path) -> None:
    tables = tables_of(tmp_path)
    for statement, reason in WRONG.items():
        with pytest.raises(FlinkpyError, match=reason):
            tables.execute_sql(statement)
    tables.execute_sql(
        "CREATE TABLE kept (id INT) WITH ('connector' = 'values', "
        "'lookup.partial-cache.max-rows' = '5')"
    )
    with pytest.raises(FlinkpyError, match=r"is for 'lookup\.cache' = 'PARTIAL', which keeps"):
        tables.execute_sql("SELECT * FROM kept")
