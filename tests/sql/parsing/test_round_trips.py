"""Trees that are printed and read again are the same, and their places are right."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flinkpy.sql.parsing import parse_expression, parse_statement
from flinkpy.sql.parsing.tokenizer import tokenize
from flinkpy.sql.syntax.query_tree import (
    DescriptorArgument,
    Query,
    SqlExpression,
    SqlNode,
    StarItem,
    TableArgument,
)
from flinkpy.sql.syntax.statements import QueryStatement
from tests.sql.parsing import sql_printer

_SQL = Path(__file__).parents[1]
_BLANKS = st.sampled_from([" ", "\n", "\t", " /* a ; b */ ", " -- c\n", " // d\n"])


def nodes(tree: object) -> Iterator[SqlNode]:
    """All nodes of a tree, from the top."""
    if isinstance(tree, SqlNode):
        yield tree
        for field in dataclasses.fields(tree):
            yield from nodes(getattr(tree, field.name))
    elif isinstance(tree, tuple):
        for each in tree:
            yield from nodes(each)


def query_of(text: str) -> Query:
    statement = parse_statement(text)
    assert isinstance(statement, QueryStatement)
    return statement.query


def assert_places_are_right(tree: SqlNode, text: str) -> None:
    """The text at the place of a node is that node; children lie within their parents."""
    for node in nodes(tree):
        shown = text[node.span.start : node.span.end]
        assert shown == shown.strip()
        assert shown
        if isinstance(node, (StarItem, TableArgument, DescriptorArgument)):
            continue
        if isinstance(node, SqlExpression):
            assert parse_expression(shown) == node
        elif isinstance(node, Query):
            assert query_of(shown) == node
    for node in nodes(tree):
        for child in list(nodes(node))[1:]:
            assert node.span.start <= child.span.start <= child.span.end <= node.span.end


@given(sql_printer.expressions)
@settings(max_examples=60, deadline=None)
def test_an_expression_is_read_as_it_was_printed(tree: SqlExpression) -> None:
    text = sql_printer.expression(tree)
    read = parse_expression(text)
    assert read == tree
    assert_places_are_right(read, text)


@given(sql_printer.queries)
@settings(max_examples=30, deadline=None)
def test_a_query_is_read_as_it_was_printed(tree: Query) -> None:
    text = sql_printer.query(tree)
    read = query_of(text)
    assert read == tree
    assert_places_are_right(read, text)


@given(sql_printer.expressions, st.data())
@settings(max_examples=30, deadline=None)
def test_blanks_comments_and_the_case_of_keywords_change_nothing(
    tree: SqlExpression, data: st.DataObject
) -> None:
    text = sql_printer.expression(tree)
    words = []
    for token in tokenize(text)[:-1]:
        shown = text[token.span.start : token.span.end]
        words.append(shown.lower() if token.key and data.draw(st.booleans()) else shown)
        words.append(data.draw(_BLANKS))
    assert parse_expression("".join(words)) == tree


@pytest.mark.wide
@pytest.mark.parametrize("file", sorted(_SQL.glob("tpch/q*.sql")), ids=lambda file: file.stem)
def test_the_places_in_a_query_of_tpch_are_right(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert_places_are_right(query_of(text), text)
