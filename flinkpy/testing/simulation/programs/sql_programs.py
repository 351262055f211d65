"""Programs in SQL. No record is ever late: each table reads one list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.testing.simulation.programs.program_inputs import Fragile, keyed_lists, read, write

if TYPE_CHECKING:
    from flinkpy.table import StreamTableEnvironment


class FragileBatch:
    """Gives the batch, or fails when the world outside says so."""

    def __init__(self, where: str) -> None:
        self._maybe = Fragile(where)

    def __call__(self, batch: Any) -> Any:
        return self._maybe(batch)


def declare(
    tables: StreamTableEnvironment, env: StreamExecutionEnvironment, name: str, first: int
) -> None:
    """A table of keys, numbers and event times."""
    import pyarrow as pa

    from flinkpy.table.session.program_tables import stream_table

    [records] = keyed_lists(1, 70, 5, first)
    list_of_three = [((*record, time), time) for record, time in records]
    stream = (
        read(env, name, [list_of_three], columns=("k", "n", "ms"))
        .map_batches(
            FragileBatch("a batch"),
            schema=pa.schema([("k", pa.string()), ("n", pa.int64()), ("ms", pa.int64())]),
        )
        .uid(f"{name} batches")
    )
    options = stream_table(stream).options.items()
    given = ", ".join(f"'{key}' = '{value}'" for key, value in options)
    tables.execute_sql(
        f"CREATE TEMPORARY TABLE {name} (k STRING, n BIGINT, ms BIGINT, "
        "ts AS CAST(TO_TIMESTAMP_LTZ(ms, 3) AS TIMESTAMP(3)), WATERMARK FOR ts AS ts) "
        f"WITH ({given})"
    )


def _written(env: StreamExecutionEnvironment, query: str) -> None:
    """Two tables, and the rows of a query over them."""
    from flinkpy.table import StreamTableEnvironment

    tables = StreamTableEnvironment.create(env)
    declare(tables, env, "sent", 0)
    declare(tables, env, "received", 50_000)
    rows: DataStream = tables.to_data_stream(tables.sql_query(query))
    write(rows)


def sql_windows(env: StreamExecutionEnvironment) -> None:
    """Aggregates of overlapping windows over two tables."""
    _written(
        env,
        "SELECT k, window_start, COUNT(*) AS c, SUM(n) AS total, MAX(n) FILTER (WHERE n > 20) AS m "
        "FROM HOP("
        "(SELECT * FROM sent WHERE MOD(n, 7) <> 3 UNION ALL SELECT * FROM received), "
        "DESCRIPTOR(ts), INTERVAL '0.04' SECOND, INTERVAL '0.12' SECOND) "
        "GROUP BY k, window_start, window_end",
    )


_TUMBLED = "TUMBLE(TABLE {table}, DESCRIPTOR(ts), INTERVAL '0.1' SECOND)"
_SESSIONS = "SESSION(TABLE {table} PARTITION BY k, DESCRIPTOR(ts), INTERVAL '0.02' SECOND)"


def sql_held_windows(env: StreamExecutionEnvironment) -> None:
    """What holds the rows of windows until they close: joins, and the first rows; and some rows of
    a window, of which only the number is known."""
    sent, received = (_TUMBLED.format(table=name) for name in ("sent", "received"))
    _written(
        env,
        "SELECT 'joined' AS what, L.k, L.window_start AS w, L.n, R.n AS other "
        f"FROM (SELECT * FROM {sent}) L FULL JOIN (SELECT * FROM {received}) R "
        "ON L.k = R.k AND L.window_start = R.window_start AND L.window_end = R.window_end "
        "AND MOD(L.n, 3) = MOD(R.n, 3) "
        "UNION ALL SELECT 'first', k, window_start, n, rn FROM (SELECT *, ROW_NUMBER() OVER "
        f"(PARTITION BY window_start, window_end, k ORDER BY n DESC) AS rn FROM {sent}) "
        "WHERE rn <= 2 "
        "UNION ALL SELECT * FROM (SELECT 'some', CAST(NULL AS STRING), CAST(NULL AS TIMESTAMP(3)), "
        f"CAST(NULL AS BIGINT), CAST(NULL AS BIGINT) FROM {received} LIMIT 9)",
    )


def sql_sessions(env: StreamExecutionEnvironment) -> None:
    """Sessions, and windows with distinct values of each set of keys."""
    sessions, received = _SESSIONS.format(table="sent"), _TUMBLED.format(table="received")
    _written(
        env,
        f"SELECT 'session' AS what, k, window_start, COUNT(*) AS c, SUM(n) AS s FROM {sessions} "
        "GROUP BY k, window_start, window_end "
        "UNION ALL SELECT 'set', k, window_start, COUNT(DISTINCT MOD(n, 5)), GROUPING(k) "
        f"FROM {received} GROUP BY window_start, window_end, ROLLUP (k)",
    )


def sql_join(env: StreamExecutionEnvironment) -> None:
    """Pairs of two tables, whenever they come."""
    _written(
        env,
        "SELECT s.k, s.n, r.n AS m FROM sent AS s JOIN received AS r "
        "ON s.k = r.k AND MOD(s.n, 4) = MOD(r.n, 4) AND s.n < 40",
    )


def sql_over(env: StreamExecutionEnvironment) -> None:
    """Sums over the rows shortly before each row."""
    _written(
        env,
        "SELECT k, n, SUM(n) OVER (PARTITION BY k ORDER BY ts "
        "RANGE BETWEEN INTERVAL '0.12' SECOND PRECEDING AND CURRENT ROW) AS total "
        "FROM (SELECT * FROM sent UNION ALL SELECT * FROM received)",
    )
