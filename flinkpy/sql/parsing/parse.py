"""From text to trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.parsing.expression_grammar import expression, operand
from flinkpy.sql.parsing.query_grammar import query
from flinkpy.sql.parsing.sql_tokens import Token, TokenKind
from flinkpy.sql.parsing.statement_grammar import statement
from flinkpy.sql.parsing.token_cursor import TokenCursor
from flinkpy.sql.parsing.tokenizer import tokenize
from flinkpy.sql.parsing.type_grammar import type_of
from flinkpy.sql.sql_errors import Span, SqlParserError
from flinkpy.sql.syntax.query_tree import Query, SqlExpression
from flinkpy.sql.syntax.statements import Statement

T = TypeVar("T")


@dataclass(frozen=True)
class ScriptStatement:
    """A statement of a script, as it stands there, and its first line (from 1). Spans of the tree
    are places in ``text``."""

    text: str
    line: int
    statement: Statement


class _FlinkGrammar:
    """The parts of the grammar that need each other meet here."""

    def expression(self, cursor: TokenCursor) -> SqlExpression:
        return expression(cursor)

    def operand(self, cursor: TokenCursor) -> SqlExpression:
        return operand(cursor)

    def query(self, cursor: TokenCursor) -> Query:
        return query(cursor)


def parse_statement(text: str) -> Statement:
    """The statement that stands in a text. A semicolon behind it is allowed."""
    return _parsed(text, _statement)


def parse_expression(text: str) -> SqlExpression:
    """The expression that stands in a text."""
    return _parsed(text, expression)


def parse_type(text: str) -> LogicalType:
    """The type that stands in a text.

    >>> print(parse_type("row<a int not null, b array<string>>"))
    ROW<`a` INT NOT NULL, `b` ARRAY<STRING>>
    """
    return _parsed(text, type_of)


def parse_script(text: str) -> list[ScriptStatement]:
    """The statements of a text, which are separated by semicolons."""
    pieces = _split(tokenize(text))
    return [_script_statement(text, piece) for piece in pieces]


def _script_statement(text: str, piece: Sequence[Token]) -> ScriptStatement:
    start, end = piece[0].span.start, piece[-1].span.end
    line = text.count("\n", 0, start) + 1
    own = text[start:end]
    try:
        return ScriptStatement(own, line, parse_statement(own))
    except SqlParserError as error:
        span = Span(error.span.start + start, error.span.end + start)
        raise SqlParserError(error.problem, text, span) from None


def ends_a_statement(text: str) -> bool:
    """Whether the text ends with the semicolon of its last statement; within a statement set it
    goes on. Raises SqlParserError for what has no tokens, such as an open text."""
    tokens = tokenize(text)
    pieces = _split(tokens)
    is_open = bool(pieces) and _in_statement_set(pieces[-1])
    return len(tokens) > 1 and tokens[-2].key == ";" and not is_open


def _split(tokens: Sequence[Token]) -> list[list[Token]]:
    """The tokens of each statement. The semicolons of a statement set separate its inserts."""
    pieces: list[list[Token]] = []
    piece: list[Token] = []
    for token in tokens:
        if token.kind != TokenKind.END and (token.key != ";" or _in_statement_set(piece)):
            piece.append(token)
        elif piece:
            pieces.append(piece)
            piece = []
    return pieces


def _in_statement_set(piece: Sequence[Token]) -> bool:
    """Whether these tokens begin a statement set that has not come to its END."""
    keys = [token.key for token in piece[:4]]
    begins = any(keys[at : at + 2] == ["STATEMENT", "SET"] for at in (1, 2))
    return begins and piece[-1].key != "END"


def _statement(cursor: TokenCursor) -> Statement:
    if cursor.at_end():
        cursor.fail("there is no statement in this text")
    made = statement(cursor)
    if cursor.accept(";") and not cursor.at_end():
        cursor.fail("one statement is expected; several are a script")
    return made


def _parsed(text: str, construct: Callable[[TokenCursor], T]) -> T:
    cursor = TokenCursor(text, tokenize(text), _FlinkGrammar())
    try:
        made = construct(cursor)
    except RecursionError:
        raise SqlParserError("parentheses are nested too deeply", text, cursor.next.span) from None
    cursor.expect_end()
    return made
