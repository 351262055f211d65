"""Expressions as text again."""

from __future__ import annotations

from decimal import Decimal

import pytest

from flinkpy.common.logical_types.logical_type import (
    DayTimeIntervalType,
    DecimalType,
    IntType,
    YearMonthIntervalType,
)
from flinkpy.sql.syntax.expression_text import expression_text
from flinkpy.sql.syntax.query_tree import (
    CaseCall,
    CastCall,
    FunctionCall,
    Identifier,
    SqlExpression,
    SqlLiteral,
)

A, B = Identifier(("a",)), Identifier(("b", "c"))
ONE = SqlLiteral(1, IntType())


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (FunctionCall("*", (FunctionCall("+", (A, B)), ONE)), "(`a` + `b`.`c`) * 1"),
        (FunctionCall("NOT", (FunctionCall("AND", (A, A)),)), "NOT (`a` AND `a`)"),
        (FunctionCall("IS NOT NULL", (A,)), "`a` IS NOT NULL"),
        (FunctionCall("BETWEEN", (A, ONE, ONE)), "`a` BETWEEN 1 AND 1"),
        (FunctionCall("IN", (A, ONE, ONE)), "`a` IN (1, 1)"),
        (FunctionCall("UPPER", (SqlLiteral("it's", IntType()),)), "UPPER('it''s')"),
        (FunctionCall("EXTRACT", (A,), options=(("unit", "DAY"),)), "EXTRACT(DAY FROM `a`)"),
        (FunctionCall("-", (A, B), options=(("unit", "SECOND"),)), "(`a` - `b`.`c`) SECOND"),
        (CastCall(A, IntType(), is_try=True), "TRY_CAST(`a` AS INT)"),
        (CaseCall(None, ((A, ONE),), None), "CASE WHEN `a` THEN 1 END"),
        (SqlLiteral(90_000, DayTimeIntervalType()), "INTERVAL '90' SECOND"),
        (SqlLiteral(500, DayTimeIntervalType()), "INTERVAL '0.5' SECOND"),
        (SqlLiteral(14, YearMonthIntervalType()), "INTERVAL '14' MONTH"),
        (SqlLiteral(Decimal("1.50"), IntType()), "1.50"),
        (SqlLiteral(Decimal("-1E+2"), DecimalType(3, 0)), "-100"),
        (
            SqlLiteral(Decimal("1E+30"), DecimalType(31, 0)),
            f"CAST('1{30 * '0'}' AS DECIMAL(31, 0))",
        ),
        (SqlLiteral(b"\x0a", IntType()), "X'0A'"),
        (SqlLiteral(None, IntType()), "NULL"),
    ],
)
def test_an_expression_is_written_as_sql_takes_it(expression: SqlExpression, text: str) -> None:
    assert expression_text(expression) == text
