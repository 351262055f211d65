"""Changes stay in their order on their way to a table, however many subtasks there are: a row that
replaces another one never comes before it, and none is taken back before it was added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from flinkpy.common import Types
from flinkpy.common.types import Row, RowKind
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import StreamTableEnvironment
from flinkpy.table.expressions import col
from flinkpy.testing.tables import clear_results, register_rows, results

ROWS, KEYS = 120, 6
INSERT, BEFORE, AFTER, DELETE = RowKind
_KEY = "PRIMARY KEY (id) NOT ENFORCED"
# the last of several rows of a key is the largest
KEPT = (
    "SELECT id, n FROM s",
    "SELECT id, n + 0 FROM s WHERE n > 7",
    "SELECT id, MAX(n) FROM s GROUP BY id UNION ALL SELECT id + 100, n FROM s",
    "SELECT id, n FROM s UNION ALL SELECT id + 100, n FROM s WHERE n > 7",
    "SELECT * FROM (VALUES (1000, 1)) UNION ALL SELECT id, n FROM s",
)


@pytest.fixture
def tables() -> Iterator[StreamTableEnvironment]:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(3)
    made = StreamTableEnvironment.create(env)
    rows = []
    for n in range(ROWS):
        if n >= KEYS:
            rows.append(Row.of_kind(BEFORE, n % KEYS, n - KEYS))
        rows.append(Row.of_kind(INSERT if n < KEYS else AFTER, n % KEYS, n))
    made.execute_sql(
        f"CREATE TABLE s (id INT, n INT, {_KEY}) WITH ('connector' = 'values', 'bounded' = 'true', "
        f"'data-id' = '{register_rows(rows)}', 'rows-per-batch' = '1', "
        "'changelog-mode' = 'I,UB,UA,D')"
    )
    made.execute_sql(
        "CREATE TABLE all_changes (id INT, n INT) WITH ('connector' = 'values', "
        "'sink-insert-only' = 'false')"
    )
    made.execute_sql(
        f"CREATE TABLE by_key (id INT, n INT, {_KEY}) WITH ('connector' = 'values', "
        "'sink-insert-only' = 'false')"
    )
    yield made
    clear_results()


@pytest.mark.wide(but=("id, n FROM s]",))
@pytest.mark.parametrize("query", KEPT)
def test_rows_come_in_their_order(tables: StreamTableEnvironment, query: str) -> None:
    inserts = tables.create_statement_set()
    inserts.add_insert_sql(f"INSERT INTO all_changes {query}")
    inserts.add_insert_sql(f"INSERT INTO by_key {query}")
    inserts.execute().wait()
    there: Counter[tuple[int, ...]] = Counter()
    for row in results("all_changes"):
        there[tuple(row)] += 1 if row.get_row_kind() in (INSERT, AFTER) else -1
        assert there[tuple(row)] >= 0, f"{row} goes before it has come"
    upserts = [tuple(row) for row in results("by_key") if row.get_row_kind() is not DELETE]
    last: dict[int, int] = {}
    for id, n in upserts:
        assert n > last.get(id, -1), f"{n} replaces {last[id]} of {id}"
        last[id] = n
    assert sorted(last.items()) == sorted((+there).elements())
    assert {id % 100: n for id, n in last.items() if id < 1000} == {
        n % KEYS: n for n in range(ROWS - KEYS, ROWS)
    }


def test_several_writers_of_changes_need_a_primary_key(tables: StreamTableEnvironment) -> None:
    tables.execute_sql(
        "CREATE TABLE printed (id INT, n INT) WITH ('connector' = 'print', "
        "'sink.parallelism' = '2')"
    )
    with pytest.raises(ValidationError, match="come from 1 subtask, and there is no primary key"):
        tables.execute_sql("INSERT INTO printed SELECT id, n FROM s")


def test_the_columns_that_a_query_chooses_of_a_stream_of_one_subtask_stay_in_it() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(3)
    tables = StreamTableEnvironment.create(env)
    rows = env.from_collection([(1, 2)]).map(
        lambda values: Row(*values), output_type=Types.ROW([Types.INT(), Types.INT()])
    )
    changes = rows.select("f0", "f1").set_parallelism(1)
    table = tables.from_changelog_stream(changes)
    stream = tables.to_changelog_stream(table.select(col("f1")))
    assert stream.recorded.transformation.parallelism == 1


@pytest.mark.parametrize("parallelism", [1, 2])
def test_where_batches_have_one_row_each_row_gives_its_own_changes(parallelism: int) -> None:
    env = StreamExecutionEnvironment.get_execution_environment(
        {"client.progress": False, "taskmanager.network.batch.max-records": 1}
    )
    env.set_parallelism(parallelism)
    tables = StreamTableEnvironment.create(env)
    rows = register_rows([(n // 20, n) for n in range(40)])
    tables.execute_sql(
        "CREATE TABLE s (id INT, n INT) WITH ('connector' = 'values', 'bounded' = 'true', "
        f"'data-id' = '{rows}', 'rows-per-batch' = '1')"
    )
    with tables.execute_sql("SELECT id, COUNT(*) FROM s GROUP BY id").collect() as found:
        changes = list(found)
    for id in range(2):
        assert [(row.get_row_kind(), row[1]) for row in changes if row[0] == id] == [
            (INSERT, 1),
            *((kind, n + (kind is AFTER)) for n in range(1, 20) for kind in (BEFORE, AFTER)),
        ]
