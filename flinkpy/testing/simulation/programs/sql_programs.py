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


def _declare(
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
    _declare(tables, env, "sent", 0)
    _declare(tables, env, "received", 50_000)
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
