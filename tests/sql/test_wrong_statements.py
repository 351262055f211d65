"""Statements that ask for what is not there, or whose types do not fit: what the error says, and the
part of the statement that it marks."""

import pytest

from flinkpy.sql.sql_errors import ValidationError
from tests.sql.planning import Session, table

_SESSION = Session(
    {
        "t": table(
            "a INT, b BIGINT, c DOUBLE, r ROW<x INT, y ARRAY<INT>>, s STRING, d DATE, "
            "ts TIMESTAMP(3)"
        ),
        "u": table("a INT, e STRING"),
    }
)

_WRONG = [
    (
        "SELECT x FROM t",
        "x",
        "Column 'x' not found in any table; there are 'a', 'b', 'c', 'r', 's', 'd', 'ts'",
    ),
    ("SELECT A FROM t", "A", "Column 'A' not found in any table; did you mean 'a'?"),
    (
        "SELECT t.x FROM t",
        "t.x",
        "Column 'x' not found in table 't'; there are 'a', 'b', 'c', 'r', 's', 'd', 'ts'",
    ),
    ("SELECT q.a FROM t", "q.a", "Table 'q' not found in this query; there is 't'"),
    ("SELECT a FROM tt", "tt", "Object 'tt' not found; did you mean 't'?"),
    (
        "SELECT a FROM t, u",
        "a",
        "Column 'a' is ambiguous: 't' and 'u' have it; write the name of the relation before it",
    ),
    ("SELECT a + s FROM t", "a + s", "+ is called as"),
    (
        "SELECT a FROM t WHERE a",
        "a",
        "WHERE takes a condition (BOOLEAN), and this is INT; compare it with something",
    ),
    (
        "SELECT a FROM t WHERE SUM(a) > 1",
        "SUM(a)",
        "Aggregate expression SUM is illegal in WHERE clause; use HAVING",
    ),
    (
        "SELECT a, SUM(b) FROM t",
        "a",
        "Expression 'a' is not being grouped; add it to GROUP BY, or say which of its values you want, for example with MAX",
    ),
    (
        "SELECT a, b FROM t GROUP BY a",
        "b",
        "Expression 'b' is not being grouped; add it to GROUP BY, or say which of its values you want, for example with MAX",
    ),
    (
        "SELECT a, SUM(b) FROM t GROUP BY 1",
        "a",
        "Expression 'a' is not being grouped; GROUP BY takes expressions, not numbers of columns: name it there",
    ),
    (
        "SELECT SUM(SUM(a)) FROM t",
        "SUM(a)",
        "Aggregate expression SUM is illegal in an argument of SUM; aggregate in a subquery first",
    ),
    (
        "SELECT ROW_NUMBER() FROM t",
        "ROW_NUMBER()",
        "ROW_NUMBER needs a window: write ROW_NUMBER(...) OVER (ORDER BY ...)",
    ),
    (
        "SELECT a, ROW_NUMBER() OVER () FROM t",
        "ROW_NUMBER() OVER ()",
        "ROW_NUMBER needs an order: write OVER (... ORDER BY ...)",
    ),
    (
        "SELECT a FROM t WHERE ROW_NUMBER() OVER (ORDER BY a) = 1",
        "ROW_NUMBER() OVER (ORDER BY a)",
        "Windowed aggregate expression is illegal in WHERE clause; use QUALIFY, or compute it in a subquery",
    ),
    ("SELECT foo(a) FROM t", "foo(a)", "No match found for function 'FOO'; did you mean 'FLOOR'?"),
    (
        "SELECT SUBSTR1NG(s, 1) FROM t",
        "SUBSTR1NG(s, 1)",
        "No match found for function 'SUBSTR1NG'; did you mean 'SUBSTRING'?",
    ),
    ("SELECT UPPER(a) FROM t", "UPPER(a)", "UPPER is called as"),
    ("SELECT UPPER(s, s) FROM t", "UPPER(s, s)", "UPPER does not take 2 arguments: it"),
    (
        "SELECT CAST(r AS INT) FROM t",
        "CAST(r AS INT)",
        "ROW<`x` INT, `y` ARRAY<INT>> cannot be cast to INT",
    ),
    (
        "SELECT CASE WHEN a = 1 THEN a ELSE s END FROM t",
        "s",
        "The branches of CASE have no type in common: INT, STRING; cast them to one, for example CAST(... AS INT)",
    ),
    (
        "SELECT a FROM t UNION ALL SELECT a, e FROM u",
        "SELECT a, e FROM u",
        "Column count mismatch in UNION: 1 and 2 columns",
    ),
    (
        "SELECT a FROM t UNION ALL SELECT s FROM t",
        "SELECT s FROM t",
        "Type mismatch in column 1 of UNION: 'a' is INT and 's' is STRING; cast one of them",
    ),
    (
        "SELECT s FROM t INTERSECT SELECT d FROM t",
        "SELECT d FROM t",
        "Type mismatch in column 1 of INTERSECT: 's' is STRING and 'd' is DATE; cast one of them",
    ),
    (
        "VALUES (1), (1, 2)",
        "1",
        "Values passed to VALUES operator must have compatible types: a row of 2 values after one of 1",
    ),
    (
        "VALUES (1), ('a')",
        "'a'",
        "Values of one column have no type in common: INT, CHAR(1); cast them to one, for example CAST(... AS INT)",
    ),
    (
        "SELECT a FROM t WHERE a IN (SELECT a, e FROM u)",
        "a IN (SELECT a, e FROM u)",
        "IN compares 1 value with a query of 2 columns",
    ),
    (
        "SELECT (SELECT a, e FROM u) FROM t",
        "(SELECT a, e FROM u)",
        "A query that stands for a value gives one column, and this one gives 2",
    ),
    (
        "SELECT a FROM t WHERE a IN ('x', DATE '2020-01-01')",
        "a IN ('x', DATE '2020-01-01')",
        "IN is called as",
    ),
    ("SELECT r.z FROM t", "r.z", "The row 'r' has no part 'z'; there are 'x', 'y'"),
    ("SELECT a.z FROM t", "a.z", "'a' is no row with a part 'z'"),
    ("SELECT q.* FROM t", "q.*", "Unknown table 'q'; there is 't'"),
    ("SELECT *", "*", "'*' needs a FROM"),
    (
        "SELECT a FROM t ORDER BY zz",
        "zz",
        "Column 'zz' not found in any table; there are 'a', 'b', 'c', 'r', 's', 'd', 'ts'",
    ),
    (
        "SELECT DISTINCT a FROM t ORDER BY b",
        "b",
        "With SELECT DISTINCT, ORDER BY takes columns of the SELECT list only",
    ),
    ("SELECT a FROM t ORDER BY 3", "3", "ORDER BY 3: there are columns 1 to 1"),
    ("SELECT a FROM t LIMIT -1", "-1", "LIMIT takes a number of rows"),
    (
        "INSERT INTO u SELECT a FROM t",
        "SELECT a FROM t",
        "Column types of query result and sink for `u` do not match. Cause: Different number of columns: the query gives 1 (a), the table takes 2 (a, e)",
    ),
    (
        "INSERT INTO u (a, x) SELECT a, s FROM t",
        "x",
        "Unknown target column 'x' of `u`; there are 'a', 'e'",
    ),
    (
        "INSERT INTO u (a, a) SELECT a, a FROM t",
        "a",
        "Target column 'a' is assigned more than once",
    ),
    ("INSERT INTO uu SELECT 1, 'a'", "uu", "Cannot find table 'uu'; did you mean 'u'?"),
    (
        "INSERT INTO u SELECT s, s FROM t",
        "SELECT s, s FROM t",
        "Column types of query result and sink do not match: column 'a' is INT, and the query gives STRING; write CAST(... AS INT)",
    ),
    (
        "SELECT * FROM t JOIN u USING (zz)",
        "t JOIN u USING (zz)",
        "Column 'zz' not found in any table; there are 'a', 'b', 'c', 'r', 's', 'd', 'ts'",
    ),
    (
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' MINUTE))",
        "a",
        "The window function requires the timecol is a time attribute type, but is INT",
    ),
    (
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(zz), INTERVAL '1' MINUTE))",
        "zz",
        "Column 'zz' not found in any table; there are 'a', 'b', 'c', 'r', 's', 'd', 'ts'",
    ),
    (
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(d), 5))",
        "d",
        "The window function requires the timecol is a time attribute type, but is DATE",
    ),
    ("SELECT * FROM UNNEST(3)", "3", "UNNEST takes an ARRAY, a MAP or a MULTISET, and this is INT"),
    (
        "SELECT * FROM t CROSS JOIN UNNEST(a)",
        "a",
        "UNNEST takes an ARRAY, a MAP or a MULTISET, and this is INT",
    ),
    (
        "WITH c (x, y) AS (SELECT a FROM t) SELECT * FROM c",
        "c (x, y) AS (SELECT a FROM t)",
        "'c' has the columns a, and 2 names are given",
    ),
    (
        "SELECT a FROM t AS k (x, y)",
        "t AS k (x, y)",
        "'k' has the columns a, b, c, r, s, d, ts, and 2 names are given",
    ),
    (
        "SELECT COUNT(*) FILTER (WHERE a) FROM t",
        "a",
        "FILTER takes a condition (BOOLEAN), and this is INT; compare it with something",
    ),
    (
        "SELECT UPPER(DISTINCT s) FROM t",
        "UPPER(DISTINCT s)",
        "DISTINCT is for aggregates, and UPPER is none",
    ),
    (
        "SELECT GROUPING(b) FROM t GROUP BY a",
        "b",
        "Argument of GROUPING must be an expression of GROUP BY",
    ),
    (
        "SELECT a FROM t GROUP BY SUM(a)",
        "SUM(a)",
        "Aggregate expression SUM is illegal in GROUP BY; name the columns that make a group",
    ),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a > t.a GROUP BY u.e HAVING SUM(u.a) > t.b)",
        "u.a > t.a",
        "This correlated subquery is not supported (it aggregates rows that are compared with outer ones otherwise than by '='); compare columns of the subquer",
    ),
    (
        "SELECT a FROM t FOR SYSTEM_TIME AS OF d",
        "d",
        "FOR SYSTEM_TIME AS OF stands behind JOIN, with a time column of the rows before it: FROM orders AS o JOIN t FOR SYSTEM_TIME AS OF o.proctime ON ...; a table as it was at another time cannot be read",
    ),
    (
        "SELECT a FROM t WHERE t.a = ?",
        "?",
        "'?' is a parameter of a prepared statement, and there are none; write the value",
    ),
    ("SELECT SUM(a) OVER w FROM t", "SUM(a) OVER w", "Window 'w' not found"),
    (
        "SELECT LAG(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM t",
        "LAG(a) OVER (ORDER BY b ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)",
        "ROWS or RANGE not allowed with LAG: it has no frame",
    ),
    (
        "SELECT (a, b) = (1, 2, 3) FROM t",
        "(a, b) = (1, 2, 3)",
        "Rows of 2 and of 3 values cannot be compared",
    ),
    ("SELECT s[1] FROM t", "s[1]", "ITEM is called as"),
    ("SELECT ARRAY[1, 'a']", "ARRAY[1, 'a']", "ARRAY is called as"),
    (
        "SELECT a FROM t LEFT JOIN u ON t.a IN (SELECT a FROM u)",
        "a",
        "Column 'a' is ambiguous: 't' and 'u' have it; write the name of the relation before it",
    ),
    ("SELECT a > 'x' FROM t", "a > 'x'", "> is called as"),
    (
        "SELECT a FROM t HAVING a > 1",
        "a",
        "Expression 'a' is not being grouped; add it to GROUP BY, or say which of its values you want, for example with MAX",
    ),
    ("SELECT SUM(s) FROM t", "SUM(s)", "SUM is called as"),
    ("SELECT NOT a FROM t", "NOT a", "NOT is called as"),
    (
        "SELECT a AND TRUE FROM t",
        "a",
        "AND takes conditions (BOOLEAN), and this is INT; compare it with something",
    ),
]


@pytest.mark.parametrize(("statement", "marked", "problem"), _WRONG, ids=range(len(_WRONG)))
def test_the_error_of_a_wrong_statement_marks_the_place_and_says_what_is_wrong(
    statement: str, marked: str, problem: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        _SESSION.plan(statement)
    span = caught.value.span
    assert statement[span.start : span.end] == marked
    assert problem in caught.value.problem.replace("`default_catalog`.`default_database`.", "")
    assert caught.value.position is not None
