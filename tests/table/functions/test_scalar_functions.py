"""Scalar functions of users: by row, by pandas series, by Arrow arrays, and as coroutines."""

from __future__ import annotations

import datetime
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.core.errors import JobExecutionError, ProgramError
from flinkpy.sql.sql_errors import CatalogError, ValidationError
from flinkpy.table import DataTypes, EnvironmentSettings, Table, TableEnvironment
from flinkpy.table.expressions import col, lit
from flinkpy.table.udf import FunctionContext, ScalarFunction, udf

CALLS: list[object] = []


@udf(result_type="BIGINT")
def count_char(text: str | None, char: str) -> int | None:
    return None if text is None else text.count(char)


@udf(result_type=DataTypes.DOUBLE(), func_type="pandas")
def scaled(values: Any, by: int) -> Any:
    return values / by


@udf(result_type="BIGINT", func_type="arrow")
def plus(left: Any, right: Any) -> Any:
    return pc.add(left, right)


@udf
async def doubled(number: int) -> int | None:
    return None if number is None else number * 2


@udf(result_type="ROW<a BIGINT, b STRING>", input_types=["BIGINT", "STRING"])
def paired(number: int, text: str) -> tuple[int, str]:
    return number, text


@udf(result_type="STRING")
def first_field(row: Any) -> str:
    return f"{row.a} of {row['b']}"


@udf(result_type="DECIMAL(10, 2)")
def halved(value: Decimal) -> Decimal:
    return value / 2


class Life(ScalarFunction):
    """Counts its calls in each subtask, and says when it is opened and closed."""

    def open(self, function_context: FunctionContext) -> None:
        self.start = int(function_context.get_job_parameter("start", "10"))
        CALLS.append(("open", function_context.get_index_of_this_subtask()))

    def eval(self) -> int:
        self.start += 1
        return self.start

    def close(self) -> None:
        CALLS.append("close")

    def is_deterministic(self) -> bool:
        return False


def noted(*values: object) -> None:
    CALLS.append(values)


@pytest.fixture(scope="module")
def tables() -> TableEnvironment:
    made = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    made.create_temporary_view("d", rows(made))
    for name, function in {
        "count_char": count_char,
        "scaled": scaled,
        "paired": paired,
        "first_field": first_field,
        "halved": halved,
        "doubled": doubled,
    }.items():
        made.create_temporary_system_function(name, function)
    made.create_temporary_function("Plus", plus)
    return made


def rows(tables: TableEnvironment) -> Table:
    return tables.from_elements(
        [(1, "abca"), (2, None), (4, "aaaa")],
        RowType.of(("n", DataTypes.BIGINT()), ("s", DataTypes.STRING())),
    )


def found(tables: TableEnvironment, query: str) -> list[object]:
    column: list[object] = tables.sql_query(query).to_arrow().column(0).to_pylist()
    return column


VALUES: dict[str, list[object]] = {
    "count_char(s, 'a')": [2, None, 4],
    "COUNT_CHAR(s, CAST(NULL AS STRING))": [],
    "scaled(n, 10)": [0.1, 0.2, 0.4],
    "plus(n, n)": [2, 4, 8],
    "PLUS(n, 1)": [2, 3, 5],
    "default_catalog.default_database.plus(n, doubled(n))": [3, 6, 12],
    "doubled(n)": [2, 4, 8],
    "paired(n, s).b": ["abca", None, "aaaa"],
    "first_field(paired(n, 'x'))": ["1 of x", "2 of x", "4 of x"],
    "halved(CAST(n AS DECIMAL(5, 1)) + 0.005)": [Decimal("0.50"), Decimal("1.00"), Decimal("2.00")],
    "CASE WHEN s IS NULL THEN -1 ELSE count_char(s, 'b') END": [1, -1, 0],
    "COALESCE(count_char(s, 'b'), doubled(n))": [1, 4, 0],
}


def test_values_of_calls_in_sql(tables: TableEnvironment) -> None:
    wanted = {text: values for text, values in VALUES.items() if values}
    query = f"SELECT {', '.join(f'{text} AS c{at}' for at, text in enumerate(wanted))} FROM d"
    table = tables.sql_query(query).to_arrow()
    assert dict(zip(wanted, table.to_pydict().values())) == wanted


def test_a_call_filters_rows(tables: TableEnvironment) -> None:
    assert found(tables, "SELECT n FROM d WHERE count_char(s, 'a') > 2") == [4]


def test_calls_as_expressions_of_tables(tables: TableEnvironment) -> None:
    made = rows(tables).select(
        count_char(col("s"), lit("a")).alias("c"), plus(col("n"), 3).alias("p"), doubled(col("n"))
    )
    assert made.get_schema().names == ("c", "p", "EXPR$2")
    assert made.to_arrow().to_pylist()[0] == {"c": 2, "p": 4, "EXPR$2": 2}
    assert "Calc(select=[count_char(s, 'a') AS c, plus(n, 3) AS p, doubled(n)" in made.explain()


def test_a_function_object_is_opened_and_closed_once_and_counts_its_rows(
    tables: TableEnvironment,
) -> None:
    CALLS.clear()
    life = udf(Life(), result_type="INT")
    made = rows(tables).select(life().alias("a"), life().alias("b"))
    assert made.to_arrow().to_pydict() == {"a": [11, 12, 13], "b": [14, 15, 16]}
    assert CALLS == [("open", 0), "close"]


def test_a_failing_row_is_named_with_the_line_of_the_function(tables: TableEnvironment) -> None:
    @udf(result_type="BIGINT")
    def inverse(number: int) -> int:
        return 10 // (number - 2)

    with pytest.raises(JobExecutionError) as failure:
        rows(tables).select(col("s"), inverse(col("n"))).to_arrow()
    text = str(failure.value)
    assert "inverse(n): integer division or modulo by zero, in the row (n=2" in text
    assert "return 10 // (number - 2)" in text
    assert "in operator 'Calc(select=[s, inverse(n)" in text


@pytest.mark.parametrize(
    ("result_type", "func_type", "given", "said"),
    [
        ("BIGINT", "general", "x", r"f\(n\): it gave 'x' \(str\), and its type is BIGINT"),
        ("INT NOT NULL", "general", None, "it gave None, and its type is INT NOT NULL"),
        ("BIGINT", "pandas", [1, 2], "it gave 2 values for 3 rows"),
        ("INT NOT NULL", "pandas", [1, None, 3], r"it gave a null.*in the row \(.*n=2"),
        ("BIGINT", "arrow", pa.array(["x"]), "it gave a StringArray that is no BIGINT"),
    ],
)
def test_a_result_that_is_not_of_its_type_is_refused(
    tables: TableEnvironment, result_type: str, func_type: str, given: object, said: str
) -> None:
    f = udf(lambda number: given, result_type=result_type, func_type=func_type, name="f")
    with pytest.raises(JobExecutionError, match=said):
        rows(tables).select(f(col("n"))).to_arrow()


def test_types_of_arguments_and_results(tables: TableEnvironment) -> None:
    CALLS.clear()
    tables.create_temporary_system_function("look", udf(noted, result_type="INT"))
    found(
        tables,
        "SELECT look(DATE '2024-05-31', TIMESTAMP '2024-05-31 12:00:00.5', ARRAY[1, 2], "
        "MAP['a', 1.5], X'01', TRUE, ROW(1, 'x')) FROM (VALUES (1)) AS t (a)",
    )
    [values] = CALLS
    assert isinstance(values, tuple)
    assert list(values[:-1]) == [
        datetime.date(2024, 5, 31),
        datetime.datetime(2024, 5, 31, 12, 0, 0, 500_000),
        [1, 2],
        {"a": Decimal("1.5")},
        b"\x01",
        True,
    ]
    assert list(values[-1]) == [1, "x"]


# -- what is refused while the program is built ----------------------------------------------------


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: udf("f", result_type="INT"), "takes a function or an object"),  # type: ignore[call-overload]
        (lambda: udf(lambda a: a), "say what it gives"),
        (lambda: udf(lambda a: a, result_type="BIGNIT"), "'BIGNIT' is no type"),
        (lambda: udf(lambda a: a, result_type="INT", func_type="numpy"), "func_type is one of"),
    ],
)
def test_wrong_functions_are_refused_with_the_line(make: Any, said: str) -> None:
    with pytest.raises(ProgramError, match=f"test_scalar_functions.py:.*{said}"):
        make()


def test_java_is_refused_with_the_reason(tables: TableEnvironment) -> None:
    with pytest.raises(ProgramError, match="no Java runs here"):
        tables.create_java_temporary_function("f", "com.example.F")


# -- SQL names Python ------------------------------------------------------------------------------

MODULE = """
from flinkpy.table import DataTypes
from flinkpy.table.udf import ScalarFunction, udf

@udf(result_type=DataTypes.STRING())
def shout(text):
    return text.upper() + "!"

def size(text) -> int:
    return len(text)

def untyped(text):
    return text

class Twice(ScalarFunction):
    def eval(self, text) -> str:
        return text * 2
"""


def test_create_function_finds_python_as_import_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "words_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [each for each in sys.path if each])
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    run = tables.execute_sql
    run("CREATE FUNCTION shout AS 'words_of_mine.shout' LANGUAGE PYTHON")
    run("CREATE TEMPORARY FUNCTION size AS 'words_of_mine.size' LANGUAGE PYTHON")
    run("CREATE TEMPORARY SYSTEM FUNCTION Twice AS 'words_of_mine.Twice' LANGUAGE PYTHON")
    run("CREATE FUNCTION IF NOT EXISTS shout AS 'words_of_mine.size' LANGUAGE PYTHON")
    shown = [row[0] for row in run("SHOW USER FUNCTIONS").collect()]
    assert shown == ["shout", "size", "twice"]
    assert found(tables, "SELECT TWICE(Shout('a'))") == ["A!A!"]
    assert found(tables, "SELECT size('abc') + 1") == [4]
    run("ALTER FUNCTION shout AS 'words_of_mine.size' LANGUAGE PYTHON")
    assert found(tables, "SELECT shout('abc')") == [3]
    for statement, said in {
        "CREATE FUNCTION shout AS 'words_of_mine.size' LANGUAGE PYTHON": "there is a function",
        "CREATE FUNCTION g AS 'words_of_mine.shuot' LANGUAGE PYTHON": "did you mean 'shout'",
        "CREATE FUNCTION g AS 'no_words.f' LANGUAGE PYTHON": "no Python module 'no_words'",
        "CREATE FUNCTION g AS 'words_of_mine.untyped' LANGUAGE PYTHON": "does not say what it",
        "CREATE FUNCTION g AS 'com.example.F'": "there is no JVM",
        "DROP FUNCTION size": "DROP TEMPORARY FUNCTION it",
        "DROP FUNCTION shuot": "did you mean 'shout'",
        "DROP TEMPORARY SYSTEM FUNCTION size": "no temporary system function",
    }.items():
        with pytest.raises((CatalogError, ValidationError, ProgramError), match=said):
            run(statement)
    with pytest.raises(ValidationError, match=r"(?s)does not say what it gives.*\^\^\^"):
        run("CREATE FUNCTION g AS 'words_of_mine.untyped' LANGUAGE PYTHON")
    run("DROP FUNCTION shout")
    run("DROP TEMPORARY FUNCTION size")
    run("DROP TEMPORARY SYSTEM FUNCTION twice")
    run("DROP FUNCTION IF EXISTS shout")
    assert tables.list_user_defined_functions() == []
    with pytest.raises(ValidationError, match="No match found for function 'SHOUT'"):
        tables.sql_query("SELECT shout('a')")
