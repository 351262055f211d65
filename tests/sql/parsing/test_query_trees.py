"""Queries in all their forms, with their trees."""

import pytest

from flinkpy.sql.parsing import parse_expression, parse_statement
from flinkpy.sql.syntax.query_tree import (
    CommonTable,
    DerivedTable,
    DescriptorArgument,
    FromItem,
    FunctionCall,
    GroupingElement,
    Hint,
    Identifier,
    JoinItem,
    OrderItem,
    OverWindow,
    Query,
    Select,
    SelectItem,
    SetOperation,
    SqlExpression,
    StarItem,
    TableArgument,
    TableFunctionCall,
    TableReference,
    UnnestItem,
    ValuesQuery,
)
from flinkpy.sql.syntax.statements import QueryStatement

E = parse_expression
A, B, C, D = (Identifier((name,)) for name in "abcd")
T, U, V = (TableReference(Identifier((name,))) for name in "tuv")
ALL = SelectItem(StarItem())
DAY = E("INTERVAL '1' DAY")
ON = E("t.a = u.a")


def query(text: str) -> Query:
    statement = parse_statement(text)
    assert isinstance(statement, QueryStatement)
    return statement.query


def one(item: SqlExpression) -> Select:
    return Select((SelectItem(item),))


@pytest.mark.parametrize(
    ("source", "tree"),
    [
        ("t", T),
        (
            "c.d.t AS x (p, q)",
            TableReference(Identifier(("c", "d", "t")), alias="x", columns=("p", "q")),
        ),
        (
            "t /*+ OPTIONS('k'='v') */ x",
            TableReference(T.name, (Hint("OPTIONS", (), (("k", "v"),)),), alias="x"),
        ),
        ("t FOR SYSTEM_TIME AS OF u.ts AS x", TableReference(T.name, as_of=E("u.ts"), alias="x")),
        ("t, u", JoinItem(T, U, "CROSS")),
        ("t CROSS JOIN u", JoinItem(T, U, "CROSS")),
        ("t JOIN u ON t.a = u.a", JoinItem(T, U, "INNER", ON)),
        ("t INNER JOIN u USING (a, b)", JoinItem(T, U, "INNER", using=(A, B))),
        ("t LEFT OUTER JOIN u ON t.a = u.a", JoinItem(T, U, "LEFT", ON)),
        ("t RIGHT JOIN u ON t.a = u.a", JoinItem(T, U, "RIGHT", ON)),
        ("t FULL OUTER JOIN u ON t.a = u.a", JoinItem(T, U, "FULL", ON)),
        ("t NATURAL LEFT JOIN u", JoinItem(T, U, "LEFT", natural=True)),
        ("t JOIN u ON t.a = u.a, v", JoinItem(JoinItem(T, U, "INNER", ON), V, "CROSS")),
        ("t, u JOIN v USING (a)", JoinItem(T, JoinItem(U, V, using=(A,)), "CROSS")),
        ("t JOIN (u CROSS JOIN v) ON t.a = u.a", JoinItem(T, JoinItem(U, V, "CROSS"), "INNER", ON)),
        ("(SELECT a) AS x", DerivedTable(one(A), alias="x")),
        (
            "((SELECT a) UNION (SELECT b)) x",
            DerivedTable(SetOperation("UNION", False, one(A), one(B)), alias="x"),
        ),
        ("((SELECT a) AS x CROSS JOIN t)", JoinItem(DerivedTable(one(A), alias="x"), T, "CROSS")),
        ("t, LATERAL (SELECT a)", JoinItem(T, DerivedTable(one(A), True), "CROSS")),
        (
            "t LEFT JOIN LATERAL TABLE(f(a)) AS x (p) ON TRUE",
            JoinItem(
                T,
                TableFunctionCall(FunctionCall("F", (A,)), True, alias="x", columns=("p",)),
                "LEFT",
                E("TRUE"),
            ),
        ),
        ("TABLE(d.f(a))", TableFunctionCall(FunctionCall("d.f", (A,)))),
        ("f(a) AS x", TableFunctionCall(FunctionCall("F", (A,)), alias="x")),
        (
            "TABLE(TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL '1' DAY))",
            TableFunctionCall(
                FunctionCall("TUMBLE", (TableArgument(T.name), DescriptorArgument((A,)), DAY))
            ),
        ),
        (
            "HOP(DATA => TABLE t, SIZE => INTERVAL '1' DAY, TIMECOL => DESCRIPTOR(a))",
            TableFunctionCall(
                FunctionCall(
                    "HOP",
                    (TableArgument(T.name), DAY, DescriptorArgument((A,))),
                    ("DATA", "SIZE", "TIMECOL"),
                )
            ),
        ),
        (
            "TABLE(SESSION(TABLE t PARTITION BY (a, b) ORDER BY c, DESCRIPTOR(d), INTERVAL '1' DAY))",
            TableFunctionCall(
                FunctionCall(
                    "SESSION",
                    (TableArgument(T.name, (A, B), (OrderItem(C),)), DescriptorArgument((D,)), DAY),
                )
            ),
        ),
        (
            "f((SELECT a) PARTITION BY b, x => (TABLE t))",
            TableFunctionCall(
                FunctionCall("F", (TableArgument(one(A), (B,)), TableArgument(T.name)), (None, "x"))
            ),
        ),
        (
            "UNNEST(a) WITH ORDINALITY AS x (p, n)",
            UnnestItem(A, True, alias="x", columns=("p", "n")),
        ),
        ("t CROSS JOIN UNNEST(b)", JoinItem(T, UnnestItem(B), "CROSS")),
        (
            "(VALUES (1, 2), (3, 4)) AS x (p, q)",
            DerivedTable(
                ValuesQuery(((E("1"), E("2")), (E("3"), E("4")))), alias="x", columns=("p", "q")
            ),
        ),
    ],
)
def test_a_relation_has_its_tree(source: str, tree: FromItem) -> None:
    assert query(f"SELECT * FROM {source}") == Select((ALL,), tree)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("SELECT a", one(A)),
        (
            "SELECT ALL a AS x, b y, t.*",
            Select((SelectItem(A, "x"), SelectItem(B, "y"), SelectItem(StarItem(("t",))))),
        ),
        ("SELECT DISTINCT a FROM t WHERE b", Select((SelectItem(A),), T, True, where=B)),
        (
            "SELECT /*+ BROADCAST(t, u), STATE_TTL('t' = '1d') */ a",
            Select(
                (SelectItem(A),),
                hints=(Hint("BROADCAST", ("t", "u")), Hint("STATE_TTL", (), (("t", "1d"),))),
            ),
        ),
        (
            "SELECT a FROM t GROUP BY a, b + 1 HAVING c",
            Select(
                (SelectItem(A),),
                T,
                group_by=(
                    GroupingElement("EXPRESSION", ((A,),)),
                    GroupingElement("EXPRESSION", ((E("b + 1"),),)),
                ),
                having=C,
            ),
        ),
        (
            "SELECT a GROUP BY ()",
            Select((SelectItem(A),), group_by=(GroupingElement("SETS", ((),)),)),
        ),
        (
            "SELECT a GROUP BY (a, b)",
            Select((SelectItem(A),), group_by=(GroupingElement("SETS", ((A, B),)),)),
        ),
        (
            "SELECT a GROUP BY CUBE (a, (b, c)), ROLLUP (d)",
            Select(
                (SelectItem(A),),
                group_by=(
                    GroupingElement("CUBE", ((A,), (B, C))),
                    GroupingElement("ROLLUP", ((D,),)),
                ),
            ),
        ),
        (
            "SELECT a GROUP BY GROUPING SETS ((a, b), a, ())",
            Select((SelectItem(A),), group_by=(GroupingElement("SETS", ((A, B), (A,), ())),)),
        ),
        (
            "SELECT a GROUP BY GROUPING SETS (ROLLUP (a, b), CUBE (c), d)",
            Select(
                (SelectItem(A),),
                group_by=(GroupingElement("SETS", ((A, B), (A,), (), (C,), (), (D,))),),
            ),
        ),
        (
            "SELECT a FROM t WINDOW w AS (PARTITION BY b), v AS (ORDER BY c) QUALIFY d",
            Select(
                (SelectItem(A),),
                T,
                windows=(("w", OverWindow((B,))), ("v", OverWindow((), (OrderItem(C),)))),
                qualify=D,
            ),
        ),
        (
            "SELECT a ORDER BY b DESC NULLS FIRST, c",
            Select((SelectItem(A),), order_by=(OrderItem(B, True, True), OrderItem(C))),
        ),
        ("SELECT a LIMIT 3 OFFSET 5", Select((SelectItem(A),), limit=E("3"), offset=E("5"))),
        (
            "SELECT a OFFSET 5 ROWS FETCH NEXT 3 ROWS ONLY",
            Select((SelectItem(A),), limit=E("3"), offset=E("5")),
        ),
        ("SELECT a LIMIT ALL", one(A)),
        ("VALUES 1, (2)", ValuesQuery(((E("1"),), (E("2"),)))),
        ("TABLE t", Select((ALL,), T)),
        (
            "SELECT a UNION SELECT b UNION ALL SELECT c",
            SetOperation("UNION", True, SetOperation("UNION", False, one(A), one(B)), one(C)),
        ),
        (
            "SELECT a UNION SELECT b INTERSECT SELECT c",
            SetOperation("UNION", False, one(A), SetOperation("INTERSECT", False, one(B), one(C))),
        ),
        (
            "SELECT a EXCEPT ALL (SELECT b EXCEPT DISTINCT SELECT c)",
            SetOperation("EXCEPT", True, one(A), SetOperation("EXCEPT", False, one(B), one(C))),
        ),
        (
            "SELECT a UNION SELECT b ORDER BY c LIMIT 1",
            SetOperation("UNION", False, one(A), one(B), order_by=(OrderItem(C),), limit=E("1")),
        ),
        (
            "(SELECT a LIMIT 1) ORDER BY b",
            Select(
                (ALL,),
                DerivedTable(Select((SelectItem(A),), limit=E("1"))),
                order_by=(OrderItem(B),),
            ),
        ),
        ("(SELECT a) ORDER BY b", Select((SelectItem(A),), order_by=(OrderItem(B),))),
        (
            "WITH x AS (SELECT a), y (p) AS (TABLE x) SELECT b",
            Select(
                (SelectItem(B),),
                common_tables=(
                    CommonTable("x", (), one(A)),
                    CommonTable("y", ("p",), Select((ALL,), TableReference(Identifier(("x",))))),
                ),
            ),
        ),
    ],
)
def test_a_query_has_its_tree(text: str, tree: Query) -> None:
    assert query(text) == tree


def test_the_case_of_names_is_kept_and_that_of_keywords_does_not_matter() -> None:
    assert query("select `a`, Ab from T") == query("SELECT a, Ab FROM T")
    assert query("SELECT ab FROM T") != query("SELECT Ab FROM T")
