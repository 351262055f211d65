"""Rows that change stay in their order between a source of one subtask and operators of several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flinkpy.common import Row, RowKind, Types
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import ChangelogMode, Schema, StreamTableEnvironment

CHANGES = 400
COLUMNS = Types.ROW_NAMED(["id", "v"], [Types.LONG(), Types.LONG()])
KEYED = (
    Schema.new_builder()
    .column("id", "BIGINT NOT NULL")
    .column("v", "BIGINT")
    .primary_key("id")
    .build()
)
JOINED = "SELECT c.id, c.v FROM c LEFT JOIN d ON c.id = d.id"


def session_of(
    parallelism: int, **options: str
) -> tuple[StreamExecutionEnvironment, StreamTableEnvironment]:
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(parallelism)
    return env, StreamTableEnvironment.create(env)


def updates() -> list[Row]:
    """The value of one row rises."""
    found = [Row.of_kind(RowKind.INSERT, 1, 0)]
    for at in range(CHANGES):
        found += [
            Row.of_kind(RowKind.UPDATE_BEFORE, 1, at),
            Row.of_kind(RowKind.UPDATE_AFTER, 1, at + 1),
        ]
    return found


def rows_of(session: StreamTableEnvironment, query: str) -> list[Any]:
    found: list[Any] = session.sql_query(query).to_arrow().to_pylist()
    return found


@pytest.mark.parametrize("behind_a_map", [False, True])
def test_changes_of_a_stream_of_one_subtask_meet_in_their_order(behind_a_map: bool) -> None:
    env, session = session_of(2)
    session.create_temporary_view("d", session.from_elements([(1, "x")], ["id", "x"]))
    stream = env.from_collection(updates(), type_info=COLUMNS)
    if behind_a_map:
        stream = stream.map(lambda row: row, COLUMNS).set_parallelism(1)
    session.create_temporary_view("c", session.from_changelog_stream(stream, KEYED))
    assert rows_of(session, JOINED) == [{"id": 1, "v": CHANGES}]


def test_rows_that_replace_others_by_key_come_in_their_order() -> None:
    env, session = session_of(2)
    rows = [Row.of_kind(RowKind.UPDATE_AFTER, at % 5, at) for at in range(2 * CHANGES)]
    stream = env.from_collection(rows, type_info=COLUMNS)
    upserts = session.from_changelog_stream(stream, KEYED, ChangelogMode.upsert())
    session.create_temporary_view("c", upserts)
    found = {row["id"]: row["v"] for row in rows_of(session, "SELECT id, v FROM c")}
    assert found == {key: 2 * CHANGES - 5 + key for key in range(5)}


def test_changes_in_a_file_meet_in_their_order(tmp_path: Path) -> None:
    _, session = session_of(2)
    session.create_temporary_view("d", session.from_elements([(1, "x")], ["id", "x"]))
    before: Any = None
    with (tmp_path / "c.json").open("w") as file:
        for at in range(8 * CHANGES):
            after = {"id": 1, "v": at}
            kind = "u" if before else "c"
            file.write(json.dumps({"before": before, "after": after, "op": kind}) + "\n")
            before = after
    session.execute_sql(
        "CREATE TABLE c (id BIGINT NOT NULL, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ("
        f"'connector' = 'filesystem', 'path' = '{tmp_path}', 'format' = 'debezium-json')"
    )
    assert rows_of(session, JOINED) == [{"id": 1, "v": 8 * CHANGES - 1}]


def test_a_row_of_a_group_that_is_taken_back_looks_as_it_did() -> None:
    """0.0 and -0.0 are one key."""
    env, session = session_of(1, **{"taskmanager.network.batch.max-records": "1"})
    kind = Types.ROW_NAMED(["k"], [Types.DOUBLE()])
    zeros = [Row(zero) for zero in (0.0, -0.0, -0.0, 0.0)]
    session.create_temporary_view("a", env.from_collection(zeros, type_info=kind))
    table = session.sql_query("SELECT k, COUNT(*) AS n FROM a GROUP BY k")
    with session.to_changelog_stream(table).execute_and_collect() as results:
        assert {repr(row[0]) for row in results} == {"0.0"}


def test_an_extreme_of_a_frame_has_the_sign_of_a_zero_of_the_frame() -> None:
    env, session = session_of(1, **{"execution.runtime-mode": "BATCH"})
    values = [0.0, 1.0, -0.0, -1.0, 0.0, -0.0]
    rows = [Row(at, value) for at, value in enumerate(values)]
    kind = Types.ROW_NAMED(["at", "v"], [Types.LONG(), Types.DOUBLE()])
    session.create_temporary_view("a", env.from_collection(rows, type_info=kind))
    query = """SELECT `at`, MAX(v) OVER w AS x, MIN(v) OVER w AS m FROM a
        WINDOW w AS (ORDER BY `at` ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"""
    found = sorted((row["at"], repr(row["x"]), repr(row["m"])) for row in rows_of(session, query))
    pairs = [values[max(0, at - 1) : at + 1] for at in range(len(values))]
    assert found == [(at, repr(max(pair)), repr(min(pair))) for at, pair in enumerate(pairs)]
