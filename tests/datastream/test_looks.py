"""What a stream tells of itself, and figures about all of it."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.common import Row, Types
from flinkpy.common.text_tables import table
from flinkpy.core.errors import ProgramError
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.table.expressions import col

SALES = pa.table({"shop": ["north", "south", "north"], "amount": [3, 5, None]})


def environment() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


def sales() -> DataStream:
    return environment().from_arrow(SALES)


def test_a_stream_tells_its_fields_without_running() -> None:
    stream = sales()
    assert (stream.schema, stream.columns) == (SALES.schema, ["shop", "amount"])
    assert (
        repr(stream)
        == "<DataStream behind 'Source: Arrow Source', columns shop: string, amount: int64>"
    )
    assert (
        repr(stream.key_by("shop"))
        == "<KeyedStream behind 'key_by()', columns shop: string, amount: int64>"
    )
    assert (
        repr(stream.map(lambda row: row.amount, Types.LONG())) == "<DataStream behind 'Map', LONG>"
    )
    assert repr(stream.map(lambda row: row.amount)) == "<DataStream behind 'Map', Python values>"
    rows = stream.map(
        lambda row: row, Types.ROW_NAMED(["<b>", "n"], [Types.STRING(), Types.LONG()])
    )
    assert (rows.columns, repr(rows)) == (
        ["<b>", "n"],
        "<DataStream behind 'Map', rows <b>: STRING, n: LONG>",
    )
    assert "<td>&lt;b&gt;</td><td><code>STRING</code></td>" in str(rows._repr_html_())
    unknown = stream.map_batches(lambda batch: batch)
    assert (unknown._repr_html_(), repr(unknown)) == (
        None,
        "<DataStream behind 'MapBatches', columns>",
    )
    for nothing_known in (unknown, stream.map(lambda row: row)):
        with pytest.raises(ProgramError, match=r"take\(1\)"):
            _ = nothing_known.schema
        with pytest.raises(ProgramError, match=r"take\(1\)"):
            _ = nothing_known.columns
        assert (hasattr(nothing_known, "schema"), hasattr(nothing_known, "columns")) == (
            False,
            False,
        )


@settings(max_examples=5, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", None]), st.none() | st.integers(-9, 9)), max_size=20
    )
)
def test_figures_are_those_of_all_records(records: list[Any]) -> None:
    def rows() -> DataStream:
        return environment().from_collection(
            [Row(g=g, n=n) for g, n in records],
            Types.ROW_NAMED(["g", "n"], [Types.STRING(), Types.LONG()]),
        )

    numbers = [n for _, n in records if n is not None]
    assert rows().count() == rows().select("n").count() == len(records)
    assert rows().mean("n") == (sum(numbers) / len(numbers) if numbers else None)
    keys = [g for g, _ in records]
    assert rows().value_counts("g") == {g: keys.count(g) for g in keys}


def test_figures_of_running_results_are_of_the_last_row_of_each_key(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sold = (
        environment()
        .from_arrow(SALES, batch_rows=1)
        .key_by("shop")
        .aggregate(col("amount").sum.alias("sold"))
    )
    assert (sold.count(), sold.mean("sold"), sold.value_counts("sold")) == (2, 4.0, {3: 1, 5: 1})
    sold.describe()
    assert capsys.readouterr().out.splitlines()[3:5] == [
        "| shop   | string |     2 | null |      null | north | south    |",
        "| sold   | int64  |     2 |  4.0 |  1.414214 | 3     | 5        |",
    ]


def test_a_description_has_a_line_for_unsigned_numbers_and_decimals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    environment().from_arrow(
        pa.table(
            {
                "u": pa.array([2**64 - 1, 2**64 - 1, None], pa.uint64()),
                "d": [Decimal("1.5"), None, Decimal("2.5")],
            }
        )
    ).describe()
    assert [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in capsys.readouterr().out.splitlines()[3:5]
    ] == [
        ["u", "uint64", "2", "1.844674e+19", "0.0", str(2**64 - 1), str(2**64 - 1)],
        ["d", "decimal128(2, 1)", "2", "2.0", "0.707107", "1.5", "2.5"],
    ]


def test_values_that_are_structs_are_counted_as_rows() -> None:
    places = environment().from_arrow(pa.table({"at": [{"x": 1}, None, {"x": 2}, {"x": 1}]}))
    assert places.value_counts("at") == {Row(x=1): 2, None: 1, Row(x=2): 1}


def test_a_figure_of_what_is_no_column_names_the_call_and_the_columns_that_there_are() -> None:
    for look in (lambda: sales().mean("x"), lambda: sales().aggregate(col("x").sum)):
        with pytest.raises(ProgramError, match=r"there is no column 'x'; there are shop, amount$"):
            look()
    with pytest.raises(ProgramError, match=r"mean\(\) works on columns"):
        environment().from_collection([1]).mean("x")


def test_figures_of_what_does_not_end_or_of_each_key_are_refused() -> None:
    endless = environment().generate(
        lambda n: Row(n=n), type_info=Types.ROW_NAMED(["n"], [Types.LONG()])
    )
    for look in (
        endless.count,
        lambda: endless.mean("n"),
        lambda: endless.value_counts("n"),
        endless.describe,
    ):
        with pytest.raises(
            ProgramError, match=r"waits for the end of the stream, and .* does not end"
        ):
            look()
    with pytest.raises(ProgramError, match=r"How many each key has: aggregate"):
        sales().key_by("shop").count()


@pytest.mark.parametrize(
    ("look", "instead"),
    [
        (lambda keyed: keyed.mean("amount"), r'aggregate\(col\("amount"\)\.avg'),
        (lambda keyed: keyed.value_counts("amount"), r"key_by\(key, 'amount'\)\.aggregate"),
        (lambda keyed: keyed.describe(), r"Figures of each key: aggregate\("),
    ],
)
def test_figures_of_a_whole_stream_are_refused_behind_key_by(look: Any, instead: str) -> None:
    with pytest.raises(ProgramError, match=rf"call it before key_by\(\.\.\.\)\. .*{instead}"):
        look(sales().key_by("shop"))


@pytest.mark.parametrize(
    ("attempt", "told"),
    [
        (lambda stream: stream["amount"], r"select\('amount'\) gives that column"),
        (lambda stream: stream[:3], r"take\(n\) gives the first records"),
        (list, r"execute_and_collect\(\) all, one after the other"),
        (lambda stream: stream[col("amount") > 3], r"filter\(col\(\"x\"\) > 5\) keeps records"),
        (
            lambda stream: stream.filter("amount > 3"),
            r"not text, this is 'amount > 3': write filter\(col",
        ),
        *(
            (lambda stream, name=name: getattr(stream, name), f"a stream has no {name}")
            for name in (
                "to_parquet",
                "add_columns",
                "plot",
                "explain",
                "dropna",
                "fillna",
                "sample",
                "tail",
                "dtypes",
                "merge",
                "nunique",
                "iloc",
                "persist",
                "toPandas",
                "withColumnRenamed",
                "query",
                "astype",
                "values",
                "reset_index",
                "keyBy",
                "reduceByKey",
                "withColumns",
                "flatMap",
                "explode",
                "rolling",
                "timeWindow",
                "inspect",
                "fold",
                "sinkTo",
                "unionAll",
                "dropDuplicates",
                "with_watermark",
                "lag",
                "to_table",
                "iterrows",
            )
        ),
    ],
)
def test_what_users_of_frames_try_is_told(attempt: Any, told: str) -> None:
    with pytest.raises((AttributeError, TypeError, ProgramError), match=told):
        attempt(sales())


def test_a_table_rounds_long_floats_and_shows_moments_whole() -> None:
    at = datetime.datetime(
        2024, 1, 1, 12, 30, 15, 123456, datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    )
    shown = table([(0.1 + 0.2, at), (12.5, at)], ["x", "at"])
    assert "|  0.3 | 2024-01-01 12:30:15.123456+05:30 |" in shown
    assert "| 0.30000000000000004 | 2024-01-01 12:30:15.123456+05:30 |" in table(
        [(0.1 + 0.2, at)], ["x", "at"], None
    )
