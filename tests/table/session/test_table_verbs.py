"""The verbs of tables mean what SQL means."""

from __future__ import annotations

import pyarrow as pa
import pytest

from flinkpy.core.errors import ProgramError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from flinkpy.table.expressions import col, lit


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    sales = made.from_elements(
        [("a", 1, 2.5), ("b", 2, None), ("a", 3, 1.5), ("c", 4, 9.0)], ["shop", "n", "price"]
    )
    made.create_temporary_view("sales", sales)
    made.create_temporary_view(
        "shops", made.from_elements([("a", "Oslo"), ("b", "Bergen"), ("d", "Bodø")], ["id", "city"])
    )
    return made


@pytest.fixture
def sales(tables: TableEnvironment) -> Table:
    return tables.from_path("sales")


def rows(table: Table) -> list[tuple[object, ...]]:
    return [tuple(row) for row in table.execute().collect()]


VERBS = [
    (
        lambda sales, shops: sales.select(col("shop"), (col("n") * 2 + 1).alias("m")),
        "SELECT shop, n * 2 + 1 AS m FROM sales",
    ),
    (
        lambda sales, shops: sales.where((col("n") > 1) & col("price").is_not_null),
        "SELECT * FROM sales WHERE n > 1 AND price IS NOT NULL",
    ),
    (
        lambda sales, shops: sales.filter(col("shop").in_("a", "c") | (col("n") == lit(2))),
        "SELECT * FROM sales WHERE shop IN ('a', 'c') OR n = 2",
    ),
    (
        lambda sales, shops: sales.group_by(col("shop")).select(
            col("shop"), col("n").sum.alias("total"), col("price").count.alias("prices")
        ),
        "SELECT shop, SUM(n) AS total, COUNT(price) AS prices FROM sales GROUP BY shop",
    ),
    (
        lambda sales, shops: sales.select(col("n").max.alias("most"), col("n").avg.alias("mean")),
        "SELECT MAX(n) AS most, AVG(n) AS mean FROM sales",
    ),
    (
        lambda sales, shops: sales.join(shops, col("shop") == col("id")).select(
            col("city"), col("n")
        ),
        "SELECT city, n FROM sales JOIN shops ON shop = id",
    ),
    (
        lambda sales, shops: sales.full_outer_join(shops, col("shop") == col("id")),
        "SELECT * FROM sales FULL JOIN shops ON shop = id",
    ),
    (
        lambda sales, shops: sales.order_by(col("shop"), col("n").desc).fetch(3),
        "SELECT * FROM sales ORDER BY shop, n DESC LIMIT 3",
    ),
    (
        lambda sales, shops: sales.order_by(col("n").asc).limit(2, 1),
        "SELECT * FROM sales ORDER BY n OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY",
    ),
    (
        lambda sales, shops: sales.select(col("shop")).union_all(shops.select(col("id"))),
        "SELECT shop FROM sales UNION ALL SELECT id FROM shops",
    ),
    (
        lambda sales, shops: sales.select(col("shop")).minus(shops.select(col("id"))),
        "SELECT shop FROM sales EXCEPT SELECT id FROM shops",
    ),
    (lambda sales, shops: sales.select(col("shop")).distinct(), "SELECT DISTINCT shop FROM sales"),
    (
        lambda sales, shops: sales.add_columns((col("n") % 2).alias("odd")).drop_columns(
            col("price")
        ),
        "SELECT shop, n, n % 2 AS odd FROM sales",
    ),
    (
        lambda sales, shops: sales.rename_columns(col("n").alias("m")).alias("s"),
        "SELECT shop AS s, n AS m, price FROM sales",
    ),
    (
        lambda sales, shops: sales.select(
            col("n").cast(DataTypes.STRING()).alias("text"),
            (col("price") > 2).then("high", "low").alias("level"),
        ),
        "SELECT CAST(n AS STRING) AS text, "
        "CASE WHEN price > 2 THEN 'high' ELSE 'low' END AS level FROM sales",
    ),
]


@pytest.mark.parametrize(("made", "text"), VERBS, ids=[text for _, text in VERBS])
def test_a_verb_gives_the_plan_and_the_type_of_its_sql(
    tables: TableEnvironment, made: object, text: str
) -> None:
    by_verbs = made(tables.from_path("sales"), tables.from_path("shops"))  # type: ignore[operator]
    by_sql = tables.sql_query(text)
    assert by_verbs.get_schema() == by_sql.get_schema()
    optimized = by_sql.explain().partition("== Optimized Physical Plan ==")[2]
    assert by_verbs.explain().partition("== Optimized Physical Plan ==")[2] == optimized


def test_verbs_run(sales: Table) -> None:
    totals = sales.group_by(col("shop")).select(col("shop"), col("n").sum.alias("total"))
    assert rows(totals.order_by(col("total").desc, col("shop")).fetch(2)) == [("a", 4), ("c", 4)]


def test_what_does_not_fit_is_refused_when_the_verb_is_called(
    sales: Table, tables: TableEnvironment
) -> None:
    with pytest.raises(ValidationError, match="did you mean 'shop'"):
        sales.select(col("shp"))
    with pytest.raises(ProgramError, match=r"write col\('shop'\)"):
        sales.select("shop")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="both tables have a column 'n'"):
        sales.join(sales, col("n") == col("n"))
    with pytest.raises(ProgramError, match="did you mean 'price'"):
        sales.drop_columns(col("prise"))
    with pytest.raises(ProgramError, match="add_or_replace_columns"):
        sales.add_columns(lit(1).alias("n"))


def test_how_rows_are_sorted_is_no_value_of_a_stream() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    stream = env.from_arrow(pa.table({"n": [1]}))
    with pytest.raises(ProgramError, match=r"col\('n'\).desc says how order_by\(\)"):
        stream.select(col("n").desc.alias("x"))
