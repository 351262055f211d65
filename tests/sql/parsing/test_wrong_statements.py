"""What is wrong with a statement, and where."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from flinkpy.sql.parsing import parse_expression, parse_statement, parse_type
from flinkpy.sql.sql_errors import SqlParserError

with (Path(__file__).parent / "wrong_statements.tsv").open(encoding="utf-8") as lines:
    WRONG = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def test_there_are_forty_wrong_statements_of_each_sort_at_least() -> None:
    assert min(Counter(row["sort"] for row in WRONG).values()) >= 40


def test_a_wrong_statement_has_its_error_at_its_place() -> None:
    for row in WRONG:
        with pytest.raises(SqlParserError) as caught:
            parse_statement(row["statement"])
        error = caught.value
        found = f"{error.span.start}-{error.span.end}", error.problem
        assert found == (row["place"], row["problem"]), row["statement"]


def test_an_error_shows_the_line_with_a_caret_and_proposes_the_nearest_word() -> None:
    with pytest.raises(SqlParserError) as caught:
        parse_statement("SELECT a,\n       b\nFORM   t\nWHERE  a > 1")
    assert caught.value.position == (3, 1)
    assert str(caught.value) == (
        "FORM is taken for a name here. Did you mean FROM?\n  3 | FORM   t\n    | ^^^^"
    )


def test_an_error_at_the_end_stands_behind_the_last_word() -> None:
    with pytest.raises(SqlParserError) as caught:
        parse_statement("SELECT a\nFROM t\nWHERE -- what?\n\n")
    assert str(caught.value) == (
        "the statement ends too early; expected an expression\n  3 | WHERE -- what?\n    |      ^"
    )


@pytest.mark.parametrize("text", ["", "  \n", "-- nothing", "/* nothing */"])
def test_an_empty_text_is_no_statement(text: str) -> None:
    with pytest.raises(SqlParserError, match="there is no statement in this text"):
        parse_statement(text)


def test_what_stands_behind_an_expression_or_a_type_is_an_error() -> None:
    with pytest.raises(SqlParserError, match="b cannot stand here, behind a"):
        parse_expression("a b")
    with pytest.raises(SqlParserError, match="expected ARRAY, MULTISET, NOT or NULL, not STRING"):
        parse_type("INT STRING")


def test_a_reserved_word_is_a_name_in_backquotes_and_behind_no_dot_without() -> None:
    with pytest.raises(SqlParserError, match="as a name it needs backquotes: `value`"):
        parse_expression("t.value")
    assert parse_expression("t.`value`") == parse_expression("`t`.`value`")


def test_parentheses_that_are_nested_too_deeply_are_an_error_and_no_crash() -> None:
    with pytest.raises(SqlParserError, match="nested too deeply"):
        parse_expression("(" * 5_000 + "a" + ")" * 5_000)
