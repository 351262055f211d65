"""sqlglot cuts the text into tokens. This is the only file that knows sqlglot, and it is imported
at the first statement.

Its grammar is not used. It gives places to names and literals only, takes much that Flink refuses,
rewrites functions, and says in its own words what is wrong."""

from __future__ import annotations

import re

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token as SqlglotToken
from sqlglot.tokenizer_core import TokenType
from sqlglot.tokens import Tokenizer

from flinkpy.sql.parsing.sql_tokens import Token, TokenKind
from flinkpy.sql.sql_errors import Span, SqlParserError


class _FlinkTokenizer(Tokenizer):
    """Words are words: which of them are keywords is for the grammar to say."""

    IDENTIFIERS = ["`", '"']
    COMMENTS = ["--", "//", ("/*", "*/")]
    NESTED_COMMENTS = False
    HINT_START = "\0"  # the tokens of a hint are tokens like others
    KEYWORDS = {
        "/*+": TokenType.HINT,
        "||": TokenType.DPIPE,
        "<=": TokenType.LTE,
        ">=": TokenType.GTE,
        "<>": TokenType.NEQ,
        "!=": TokenType.NEQ,
        "=>": TokenType.FARROW,
        "->": TokenType.ARROW,
        "::": TokenType.DCOLON,
    }


_NAME = re.compile(r"[^\W\d][\w$]*")
_NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_BLANK = re.compile(r"(\s|--[^\n\r]*|//[^\n\r]*|/\*(?!\+).*?\*/)*", re.DOTALL)
_UNICODE_ESCAPE = re.compile(r"\\(\\|[0-9a-fA-F]{4}|\+[0-9a-fA-F]{6})?")
_tokenizer = _FlinkTokenizer()


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; the last is the END."""
    try:
        found = _tokenizer.tokenize(text)
    except TokenError:
        raise _unclosed(text, _end(_tokenizer.tokens)) from None
    if _after_blanks(text, _end(found)) < len(text):
        raise _unclosed(text, _end(found))
    tokens = _joined(text, [_token(text, each) for each in found])
    end = tokens[-1].span.end if tokens else 0
    return [*tokens, Token(TokenKind.END, "", "", Span(end, end))]


def _end(tokens: list[SqlglotToken]) -> int:
    return tokens[-1].end + 1 if tokens else 0


def _unclosed(text: str, after: int) -> SqlParserError:
    """The error for a quote or a comment that begins behind the last token and is never closed."""
    start = _after_blanks(text, after)
    if text.startswith("/*", start):
        problem = "the comment that begins here is not closed: */ is missing"
        return SqlParserError(problem, text, Span(start, start + 2))
    opening = next((at for at in range(start, len(text)) if text[at] in "'`\""), start)
    what = "text" if text[opening : opening + 1] == "'" else "name"
    problem = f"the {what} that begins here is not closed: {text[opening]} is missing"
    return SqlParserError(problem, text, Span(opening, opening + 1))


def _after_blanks(text: str, at: int) -> int:
    matched = _BLANK.match(text, at)
    return at if matched is None else matched.end()


def _token(text: str, found: SqlglotToken) -> Token:
    span = Span(found.start, found.end + 1)
    raw = text[span.start : span.end]
    kind = found.token_type
    if kind == TokenType.STRING:
        return Token(TokenKind.TEXT, raw[1:-1].replace("''", "'"), "", span)
    if kind == TokenType.IDENTIFIER:
        return _quoted_name(text, raw, span)
    if kind == TokenType.NUMBER:
        return Token(TokenKind.NUMBER, raw, "", span)
    if kind == TokenType.VAR:
        return _word(text, raw, span)
    return Token(TokenKind.SIGN, raw, raw, span)


def _quoted_name(text: str, raw: str, span: Span) -> Token:
    name = raw[1:-1]
    if raw[0] == '"':
        raise SqlParserError(
            f"names are quoted with backquotes and texts with single quotes: write `{name}` or "
            f"'{name}'",
            text,
            span,
        )
    if not name:
        raise SqlParserError("a name in backquotes has at least one character", text, span)
    return Token(TokenKind.QUOTED_NAME, name.replace("``", "`"), "", span)


def _word(text: str, raw: str, span: Span) -> Token:
    matched = _NAME.match(raw)
    good = 0 if matched is None else matched.end()
    if good < len(raw):
        at = span.start + good
        problem = f"the character {raw[good]!r} cannot stand here"
        if good:
            problem += "; a name that has it is written in backquotes"
        raise SqlParserError(problem, text, Span(at, at + 1))
    return Token(TokenKind.WORD, raw, raw.upper(), span)


def _joined(text: str, tokens: list[Token]) -> list[Token]:
    """Tokens that belong together without a blank: X'4142', U&'\\0041', ``.5``."""
    joined: list[Token] = []
    at = 0
    while at < len(tokens):
        token, used = _beginning_at(text, tokens, at)
        joined.append(token)
        at += used
    return joined


def _beginning_at(text: str, tokens: list[Token], at: int) -> tuple[Token, int]:
    first = tokens[at]
    second = tokens[at + 1] if at + 1 < len(tokens) else None
    if second is None or second.span.start != first.span.end:
        return _checked_number(text, first), 1
    both = first.span.hull(second.span)
    if first.key == "X" and second.kind == TokenKind.TEXT:
        return _bytes(text, second.value, both), 2
    if first.key == "U" and second.key == "&" and at + 2 < len(tokens):
        third = tokens[at + 2]
        if third.kind == TokenKind.TEXT and third.span.start == both.end:
            value = _unicode(text, third.value, third.span)
            return Token(TokenKind.TEXT, value, "", both.hull(third.span)), 3
    if first.key == "." and second.kind == TokenKind.NUMBER and not _ends_a_value(tokens, at):
        joined = Token(TokenKind.NUMBER, "." + second.value, "", both)
        return _checked_number(text, joined), 2
    if first.kind == TokenKind.NUMBER and second.kind == TokenKind.WORD:
        problem = f"a blank is missing between {first.value} and {second.value}"
        raise SqlParserError(problem, text, both)
    return _checked_number(text, first), 1


def _ends_a_value(tokens: list[Token], at: int) -> bool:
    before = tokens[at - 1] if at else None
    return before is not None and before.span.end == tokens[at].span.start and before.key != "("


def _checked_number(text: str, token: Token) -> Token:
    if token.kind == TokenKind.NUMBER and _NUMBER.fullmatch(token.value) is None:
        raise SqlParserError(f"{token.value} is no number", text, token.span)
    return token


def _bytes(text: str, digits: str, span: Span) -> Token:
    if len(digits) % 2 or re.fullmatch("[0-9a-fA-F]*", digits) is None:
        problem = "X'...' has two digits from 0 to 9 and A to F for each byte"
        raise SqlParserError(problem, text, span)
    return Token(TokenKind.BYTES, digits, "", span)


def _unicode(text: str, escaped: str, span: Span) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        if code is None:
            problem = r"after \ in U&'...' stand four hexadecimal digits, + and six of them, or \ "
            raise SqlParserError(problem.strip(), text, span)
        return "\\" if code == "\\" else chr(int(code.lstrip("+"), 16))

    return _UNICODE_ESCAPE.sub(character, escaped)
