"""Windows, frames, sets of columns and SQL's functions as the Table API writes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import EnvironmentSettings, Table, TableEnvironment
from flinkpy.table.expressions import (
    CURRENT_ROW,
    UNBOUNDED_RANGE,
    array,
    call,
    call_sql,
    col,
    lit,
    log,
    map_,
    range_,
    row,
    row_interval,
    with_all_columns,
    with_columns,
    without_columns,
)
from flinkpy.table.window import GroupWindow, Over, OverWindow, Session, Slide, Tumble


@pytest.fixture(scope="module")
def visits() -> Table:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.execute_sql(
        "CREATE TABLE r (n BIGINT, k AS MOD(n, 2), ts AS TO_TIMESTAMP_LTZ(n * 1000, 3), "
        "WATERMARK FOR ts AS ts) WITH ('connector' = 'datagen', 'number-of-rows' = '10', "
        "'fields.n.kind' = 'sequence', 'fields.n.start' = '0', 'fields.n.end' = '9')"
    )
    return tables.from_path("r")


@pytest.fixture(scope="module")
def things() -> Table:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    return tables.from_elements([(1, "a", [3, 1]), (2, "b", [5])], ["n", "s", "xs"])


def listed(table: Table) -> list[tuple[object, ...]]:
    return sorted(tuple(each.values()) for each in table.to_arrow().to_pylist())


WINDOWS: dict[str, tuple[GroupWindow, list[tuple[object, ...]]]] = {
    "tumbling": (Tumble.over(lit(5).seconds), [(0, 6), (0, 14), (1, 4), (1, 21)]),
    "sliding": (
        Slide.over(lit(8).seconds).every(lit(4).seconds),
        [(0, 2), (0, 8), (0, 12), (0, 18), (1, 4), (1, 9), (1, 16), (1, 21)],
    ),
    "sessions": (Session.with_gap(lit(3).seconds), [(0, 20), (1, 25)]),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_groups_of_windows(visits: Table, name: str) -> None:
    window, wanted = WINDOWS[name]
    grouped = visits.window(window.on(visits.ts).alias("w")).group_by(col("w"), col("k"))
    found = grouped.select(
        col("k"), col("n").sum.alias("n"), col("w").start.alias("s"), col("w").end.alias("e")
    )
    assert found.get_schema().names == ("k", "n", "s", "e")
    assert [each[:2] for each in listed(found)] == wanted


FRAMES: dict[str, tuple[OverWindow, list[int]]] = {
    "rows": (
        Over.order_by(col("ts")).preceding(row_interval(1)).following(CURRENT_ROW),
        [0, 1, 3, 5, 7, 9, 11, 13, 15, 17],
    ),
    "a range": (
        Over.partition_by(col("k")).order_by(col("ts")).preceding(lit(2).seconds),
        [0, 1, 2, 4, 6, 8, 10, 12, 14, 16],
    ),
    "all before": (
        Over.partition_by(col("k")).order_by(col("ts")).preceding(UNBOUNDED_RANGE),
        [0, 1, 2, 4, 6, 9, 12, 16, 20, 25],
    ),
}


@pytest.mark.parametrize("name", FRAMES)
def test_aggregates_over_frames(visits: Table, name: str) -> None:
    window, wanted = FRAMES[name]
    found = visits.over_window(window.alias("w")).select(
        visits.n, visits.n.sum.over(col("w")).alias("s")
    )
    assert [each[1] for each in listed(found)] == wanted


EXPRESSIONS: dict[str, tuple[Any, list[object]]] = {
    "a property": (col("n").log2, [0.0, 1.0]),
    "a method": (col("xs").array_sort(), [[1, 3], [5]]),
    "a base": (col("n").log(2), [0.0, 1.0]),
    "a function": (log(8, 2), [3.0, 3.0]),
    "an array": (array(col("n"), 7), [[1, 7], [2, 7]]),
    "a map": (map_("k", col("n")), [[("k", 1)], [("k", 2)]]),
    "a row": (row(col("n"), "x"), [{"EXPR$0": 1, "EXPR$1": "x"}, {"EXPR$0": 2, "EXPR$1": "x"}]),
    "text of SQL": (call_sql("n * 10 + CHAR_LENGTH(s)"), [11, 21]),
    "by name": (call("CONCAT_WS", "-", col("s"), "x"), ["a-x", "b-x"]),
    "of two": (col("s").concat("!"), ["a!", "b!"]),
}


def test_functions_of_sql_as_expressions(things: Table) -> None:
    made = things.select(*(each.alias(name) for name, (each, _) in EXPRESSIONS.items()))
    found = made.to_arrow().to_pydict()
    assert found == {name: values for name, (_, values) in EXPRESSIONS.items()}


def test_aggregates_of_sql_as_expressions(things: Table) -> None:
    made = things.select(col("n").sum0, col("s").list_agg("+"), col("s").list_agg().distinct)
    assert listed(made) == [(3, "a+b", "a,b")]


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (with_all_columns(), ("n", "s", "xs")),
        (with_columns(range_("n", "s")), ("n", "s")),
        (with_columns(range_(2, 3), col("n")), ("s", "xs", "n")),
        (without_columns("s"), ("n", "xs")),
    ],
)
def test_sets_of_columns(things: Table, columns: Any, names: tuple[str, ...]) -> None:
    assert things.select(columns).get_schema().names == names


def test_tables_have_all_their_rows_in_set_operations(things: Table) -> None:
    twice = things.select(things.n).union_all(things.select(things.n))
    assert listed(twice.minus_all(things.select(things.n))) == [(1,), (2,)]
    assert listed(twice.intersect_all(twice)) == [(1,), (1,), (2,), (2,)]


MISTAKES: dict[str, tuple[Callable[[Table], object], str]] = {
    "a window without a name": (
        lambda t: t.window(Tumble.over(lit(1).seconds).on(col("n"))),
        "the window needs a name",
    ),
    "a window of rows": (
        lambda t: t.window(Tumble.over(row_interval(3)).on(col("n")).alias("w")),
        "windows have a length such as",
    ),
    "groups without the window": (
        lambda t: t.window(Tumble.over(lit(1).hours).on(col("n")).alias("w")).group_by(col("s")),
        r"names the window: col\('w'\)",
    ),
    "a window that is not there": (
        lambda t: t.over_window(Over.order_by(col("n")).alias("w")).select(
            col("n").sum.over(col("v"))
        ),
        "over_window\\(\\) has w",
    ),
    "a word of a window alone": (lambda t: t.select(col("w").start), "start cannot stand here"),
    "a column that is not there": (lambda t: t.select(with_columns("m")), "no column 'm'"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_named(things: Table, name: str) -> None:
    make, said = MISTAKES[name]
    with pytest.raises((ProgramError, ValidationError), match=said):
        make(things)


def test_streams_do_not_have_functions_of_sql() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_arrow(pa.table({"a": [1.0]}))
    with pytest.raises(ProgramError, match="which tables have and streams do not"):
        stream.select(col("a").sin.alias("b"))
