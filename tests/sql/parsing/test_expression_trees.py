"""Expressions and their trees: what binds closer, constants, functions with a syntax of their own."""

from datetime import date, datetime, time
from decimal import Decimal

import pytest

from flinkpy.common.logical_types.logical_type import BooleanType, DecimalType, VarCharType
from flinkpy.sql.parsing import parse_expression
from flinkpy.sql.syntax.query_tree import (
    ArrayConstructor,
    CaseCall,
    CastCall,
    ElementAccess,
    FieldAccess,
    FrameBound,
    FunctionCall,
    Identifier,
    MapConstructor,
    OrderItem,
    OverWindow,
    RowConstructor,
    SqlExpression,
    SqlLiteral,
    StarItem,
)

A, B, C, D = (Identifier((name,)) for name in "abcd")


def call(name: str, *arguments: SqlExpression, **options: object) -> FunctionCall:
    return FunctionCall(name, arguments, options=tuple(options.items()))


def literal(text: str) -> SqlLiteral:
    read = parse_expression(text)
    assert isinstance(read, SqlLiteral)
    return read


@pytest.mark.parametrize(
    ("text", "with_parentheses"),
    [
        ("a OR b AND c", "a OR (b AND c)"),
        ("NOT a AND b", "(NOT a) AND b"),
        ("NOT a = b", "NOT (a = b)"),
        ("NOT NOT a IS NULL", "NOT (NOT (a IS NULL))"),
        ("a = b IS NOT NULL", "(a = b) IS NOT NULL"),
        ("a = b IN (c)", "a = (b IN (c))"),
        ("a < b = c", "(a < b) = c"),
        ("a - b - c", "(a - b) - c"),
        ("a - b * c", "a - (b * c)"),
        ("a / b % c", "(a / b) % c"),
        ("a || b + c", "(a || b) + c"),
        ("-a * b", "(-a) * b"),
        ("- -a", "-(-a)"),
        ("-a.b[1]", "-(a.b[1])"),
        ("a + b = c + d", "(a + b) = (c + d)"),
        ("a BETWEEN b AND c AND d", "(a BETWEEN b AND c) AND d"),
        ("a BETWEEN b + 1 AND c + 1 OR d", "(a BETWEEN (b + 1) AND (c + 1)) OR d"),
        ("a NOT LIKE b || c ESCAPE d", "a NOT LIKE (b || c) ESCAPE d"),
        ("a IS DISTINCT FROM b + c", "a IS DISTINCT FROM (b + c)"),
        ("a IS NOT DISTINCT FROM b AND c", "(a IS NOT DISTINCT FROM b) AND c"),
        ("NOT a IN (b) OR c", "(NOT (a IN (b))) OR c"),
        ("INTERVAL '1' DAY * a + b", "(INTERVAL '1' DAY * a) + b"),
        ("a.b.c", "`a`.`b`.`c`"),
        ("INTERVAL 3 HOURS", "INTERVAL '1' HOUR * 3"),
        ("INTERVAL a DAY + b", "(INTERVAL '1' DAY * a) + b"),
        ("INTERVAL (a + 1) WEEK", "INTERVAL '7' DAY * (a + 1)"),
        ("INTERVAL '2' QUARTERS", "INTERVAL '6' MONTH"),
        ("INTERVAL '2' DAYS", "INTERVAL '2' DAY"),
        ("TIMESTAMP '2024-05-03'", "TIMESTAMP '2024-05-03 00:00:00'"),
    ],
)
def test_operators_bind_as_in_flink(text: str, with_parentheses: str) -> None:
    assert parse_expression(text) == parse_expression(with_parentheses)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("f(a, b)", call("F", A, B)),
        ("`f`(a)", call("F", A)),
        ("d.My_F(a)", call("d.My_F", A)),
        ("f()", call("F")),
        ("COUNT(*)", call("COUNT", StarItem())),
        ("count(DISTINCT a)", FunctionCall("COUNT", (A,), distinct=True)),
        ("f(x => a, b)", FunctionCall("F", (A, B), ("x", None))),
        ("CURRENT_TIMESTAMP", call("CURRENT_TIMESTAMP")),
        ("localtime()", call("LOCALTIME")),
        ("-a", call("- (unary)", A)),
        ("a LIKE b ESCAPE c", call("LIKE", A, B, C)),
        ("a NOT SIMILAR TO b", call("NOT SIMILAR TO", A, B)),
        ("a BETWEEN SYMMETRIC b AND c", call("BETWEEN", A, B, C, symmetric=True)),
        ("a NOT BETWEEN ASYMMETRIC b AND c", call("NOT BETWEEN", A, B, C)),
        ("a IS JSON", call("IS JSON", A, kind="VALUE")),
        ("a IS NOT JSON SCALAR", call("IS NOT JSON", A, kind="SCALAR")),
        ("a IS NOT UNKNOWN", call("IS NOT UNKNOWN", A)),
        ("(a, b) OVERLAPS (c, d)", call("OVERLAPS", A, B, C, D)),
        ("EXTRACT(day FROM a)", call("EXTRACT", A, unit="DAY")),
        ("FLOOR(a TO HOUR)", call("FLOOR", A, unit="HOUR")),
        ("ceil(a)", call("CEIL", A)),
        ("TIMESTAMPADD(MONTH, a, b)", call("TIMESTAMPADD", A, B, unit="MONTH")),
        ("TIMESTAMPDIFF(SECOND, a, b)", call("TIMESTAMPDIFF", A, B, unit="SECOND")),
        ("(a - b) HOUR", call("-", A, B, unit="SECOND")),
        ("(a - b) YEAR TO MONTH", call("-", A, B, unit="MONTH")),
        ("TRIM(a)", call("TRIM", A, side="BOTH")),
        ("TRIM(LEADING FROM a)", call("TRIM", A, side="LEADING")),
        ("TRIM(TRAILING b FROM a)", call("TRIM", A, B, side="TRAILING")),
        ("TRIM(b FROM a)", call("TRIM", A, B, side="BOTH")),
        ("POSITION(a IN b)", call("POSITION", A, B)),
        ("SUBSTRING(a FROM b FOR c)", call("SUBSTRING", A, B, C)),
        ("SUBSTRING(a, b, c)", call("SUBSTRING", A, B, C)),
        ("OVERLAY(a PLACING b FROM c FOR d)", call("OVERLAY", A, B, C, D)),
        ("JSON_EXISTS(a, b TRUE ON ERROR)", call("JSON_EXISTS", A, B, on_error="TRUE")),
        (
            "JSON_VALUE(a, b RETURNING BOOLEAN DEFAULT c ON EMPTY ERROR ON ERROR)",
            call("JSON_VALUE", A, B, returning=BooleanType(), on_empty=C, on_error="ERROR"),
        ),
        (
            "JSON_QUERY(a, b WITH CONDITIONAL ARRAY WRAPPER EMPTY ARRAY ON EMPTY NULL ON ERROR)",
            call(
                "JSON_QUERY", A, B, wrapper="CONDITIONAL", on_empty="EMPTY ARRAY", on_error="NULL"
            ),
        ),
        ("JSON_QUERY(a, b WITHOUT WRAPPER)", call("JSON_QUERY", A, B, wrapper="WITHOUT")),
        ("JSON_OBJECT(KEY a VALUE b, c: d)", call("JSON_OBJECT", A, B, C, D)),
        ("JSON_OBJECT(ABSENT ON NULL)", call("JSON_OBJECT", on_null="ABSENT")),
        ("JSON_ARRAY(a, b NULL ON NULL)", call("JSON_ARRAY", A, B, on_null="NULL")),
        (
            "JSON_OBJECTAGG(a VALUE b ABSENT ON NULL)",
            call("JSON_OBJECTAGG", A, B, on_null="ABSENT"),
        ),
        ("JSON_ARRAYAGG(a NULL ON NULL)", call("JSON_ARRAYAGG", A, on_null="NULL")),
        (
            "LISTAGG(a) WITHIN GROUP (ORDER BY b DESC)",
            FunctionCall("LISTAGG", (A,), order_by=(OrderItem(B, True),)),
        ),
        ("ARRAY_AGG(a ORDER BY b)", FunctionCall("ARRAY_AGG", (A,), order_by=(OrderItem(B),))),
        ("SUM(a) FILTER (WHERE b)", FunctionCall("SUM", (A,), filter=B)),
        ("LAG(a) IGNORE NULLS OVER w", FunctionCall("LAG", (A,), nulls="IGNORE", over="w")),
        (
            "SUM(a) OVER (PARTITION BY b, c ORDER BY d NULLS LAST ROWS 3 PRECEDING)",
            FunctionCall(
                "SUM",
                (A,),
                over=OverWindow(
                    (B, C),
                    (OrderItem(D, nulls_first=False),),
                    "ROWS",
                    FrameBound("PRECEDING", literal("3")),
                ),
            ),
        ),
        (
            "SUM(a) OVER (ORDER BY b RANGE BETWEEN INTERVAL '1' DAY PRECEDING AND CURRENT ROW)",
            FunctionCall(
                "SUM",
                (A,),
                over=OverWindow(
                    (),
                    (OrderItem(B),),
                    "RANGE",
                    FrameBound("PRECEDING", literal("INTERVAL '1' DAY")),
                    FrameBound("CURRENT ROW"),
                ),
            ),
        ),
        ("TRY_CAST(a AS DECIMAL(5, 2))", CastCall(A, DecimalType(5, 2), is_try=True)),
        ("CAST(a AS VARCHAR(3))", CastCall(A, VarCharType(3))),
        ("CASE WHEN a THEN b END", CaseCall(None, ((A, B),), None)),
        ("CASE a WHEN b, c THEN d ELSE a END", CaseCall(A, ((B, D), (C, D)), A)),
        ("f(a).b", FieldAccess(call("F", A), "b")),
        ("(a).b", FieldAccess(A, "b")),
        ("a.b[c].d", FieldAccess(ElementAccess(Identifier(("a", "b")), C), "d")),
        ("ARRAY[]", ArrayConstructor(())),
        ("MAP[a, b]", MapConstructor(((A, B),))),
        ("MULTISET[a]", call("MULTISET", A)),
        ("(a, b)", RowConstructor((A, B))),
        ("ROW(a)", RowConstructor((A,))),
        ("IF(a, b, c)", call("IF", A, B, C)),
        ("LEFT(a, b)", call("LEFT", A, B)),
        ("YEAR(a)", call("YEAR", A)),
    ],
)
def test_an_expression_has_its_tree(text: str, tree: SqlExpression) -> None:
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    ("text", "value", "type"),
    [
        ("2147483647", 2147483647, "INT NOT NULL"),
        ("2147483648", 2147483648, "BIGINT NOT NULL"),
        ("9223372036854775807", 9223372036854775807, "BIGINT NOT NULL"),
        ("-9223372036854775808", -9223372036854775808, "BIGINT NOT NULL"),
        ("1.50", Decimal("1.50"), "DECIMAL(3, 2) NOT NULL"),
        ("0.5", Decimal("0.5"), "DECIMAL(2, 1) NOT NULL"),
        (".5", Decimal("0.5"), "DECIMAL(1, 1) NOT NULL"),
        ("7.", 7, "INT NOT NULL"),
        ("1e0", 1.0, "DOUBLE NOT NULL"),
        ("1.5E-7", 1.5e-7, "DOUBLE NOT NULL"),
        ("'it''s'", "it's", "CHAR(4) NOT NULL"),
        ("''", "", "CHAR(0) NOT NULL"),
        ("'a'\n  'b'", "ab", "CHAR(2) NOT NULL"),
        (r"U&'\00e9\\\+01F600'", "é\\😀", "CHAR(3) NOT NULL"),
        ("x'4142'", b"AB", "BINARY(2) NOT NULL"),
        ("true", True, "BOOLEAN NOT NULL"),
        ("NULL", None, "NULL"),
        ("DATE '2024-5-3'", date(2024, 5, 3), "DATE NOT NULL"),
        ("TIME '10:11:12'", time(10, 11, 12), "TIME(0) NOT NULL"),
        ("TIME '10:11:12.123'", time(10, 11, 12, 123_000), "TIME(3) NOT NULL"),
        (
            "TIMESTAMP '2024-05-03 10:11:12'",
            datetime(2024, 5, 3, 10, 11, 12),
            "TIMESTAMP(0) NOT NULL",
        ),
        (
            "TIMESTAMP '2024-05-03 10:11:12.1200'",
            datetime(2024, 5, 3, 10, 11, 12, 120_000),
            "TIMESTAMP(4) NOT NULL",
        ),
        ("INTERVAL '2' DAY", 2 * 86_400_000, "INTERVAL DAY NOT NULL"),
        ("INTERVAL -'2' HOUR", -2 * 3_600_000, "INTERVAL HOUR NOT NULL"),
        ("INTERVAL '-2' MINUTE", -2 * 60_000, "INTERVAL MINUTE NOT NULL"),
        ("INTERVAL '1.25' SECOND", 1_250, "INTERVAL SECOND NOT NULL"),
        ("INTERVAL '100' DAY(3)", 100 * 86_400_000, "INTERVAL DAY(3) NOT NULL"),
        (
            "INTERVAL '1 02:03:04.567' DAY TO SECOND(3)",
            93_784_567,
            "INTERVAL DAY TO SECOND(3) NOT NULL",
        ),
        ("INTERVAL '-1 12' DAY TO HOUR", -36 * 3_600_000, "INTERVAL DAY TO HOUR NOT NULL"),
        ("INTERVAL '3' YEAR", 36, "INTERVAL YEAR NOT NULL"),
        ("INTERVAL '1-2' YEAR TO MONTH", 14, "INTERVAL YEAR TO MONTH NOT NULL"),
    ],
)
def test_a_constant_has_the_value_and_the_type_of_flink(
    text: str, value: object, type: str
) -> None:
    read = literal(text)
    assert (read.value, str(read.type)) == (value, type)
    assert type == "BOOLEAN NOT NULL" or not isinstance(read.value, bool)


def test_the_place_of_a_node_is_right_to_the_character() -> None:
    text = "  ( a + b ) * CAST ( c AS INT )  "
    product = parse_expression(text)
    assert isinstance(product, FunctionCall)
    places = [text[each.span.start : each.span.end] for each in (product, *product.arguments)]
    assert places == ["( a + b ) * CAST ( c AS INT )", "a + b", "CAST ( c AS INT )"]
