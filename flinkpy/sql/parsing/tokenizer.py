"""From text to tokens: words, names in backquotes, texts, numbers and signs. Which words are
keywords is for the grammar to say."""

from __future__ import annotations

import re
from collections.abc import Callable

from flinkpy.sql.parsing.sql_tokens import Token, TokenKind
from flinkpy.sql.sql_errors import Span, SqlParserError

_TOKEN = re.compile(
    r"""
    (?P<blank>\s+ | --[^\n\r]* | //[^\n\r]* | /\*(?!\+).*?\*/)
    | (?P<bytes>[xX]'(?:[^']|'')*')
    | (?P<unicode>[uU]&'(?:[^']|'')*')
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>`(?:[^`]|``)*`)
    | (?P<double>"(?:[^"]|"")*")
    | (?P<number>(?:[0-9]+\.?[0-9]*|(?<![\w$`)\]'".])\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[^\W\d][\w$]*)
    | (?P<open>['`"] | /\*(?!\+))
    | (?P<sign>/\*\+ | \|\| | <= | >= | <> | != | => | -> | :: | [-+*/%()\[\]{}<>=.,:;?|&^@~!\\\#])
    """,
    re.VERBOSE | re.DOTALL,
)
_WORD_PART = re.compile(r"[\w$]+")
_UNICODE_ESCAPE = re.compile(r"\\(\\|[0-9a-fA-F]{4}|\+[0-9a-fA-F]{6})?")


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; the last is the END."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:
            raise _odd_character(text, at)
        at = found.end()
        if found.lastgroup != "blank":
            tokens.append(_MADE[found.lastgroup or ""](text, found[0], Span(*found.span())))
    end = tokens[-1].span.end if tokens else 0
    return [*tokens, Token(TokenKind.END, "", "", Span(end, end))]


def _odd_character(text: str, at: int) -> SqlParserError:
    problem = f"the character {text[at]!r} cannot stand here"
    if at and _WORD_PART.match(text, at - 1) is not None:
        problem += "; a name that has it is written in backquotes"
    return SqlParserError(problem, text, Span(at, at + 1))


def _word(text: str, raw: str, span: Span) -> Token:
    return Token(TokenKind.WORD, raw, raw.upper(), span)


def _sign(text: str, raw: str, span: Span) -> Token:
    return Token(TokenKind.SIGN, raw, raw, span)


def _text(text: str, raw: str, span: Span) -> Token:
    return Token(TokenKind.TEXT, raw[1:-1].replace("''", "'"), "", span)


def _number(text: str, raw: str, span: Span) -> Token:
    word = _WORD_PART.match(text, span.end)
    if word is not None:
        both = span.hull(Span(*word.span()))
        problem = f"a blank is missing between {raw} and {word[0]}"
        if word[0] in ("e", "E"):
            problem = f"{raw}{word[0]} is no number"
        raise SqlParserError(problem, text, both)
    return Token(TokenKind.NUMBER, raw, "", span)


def _quoted_name(text: str, raw: str, span: Span) -> Token:
    if len(raw) == 2:
        raise SqlParserError("a name in backquotes has at least one character", text, span)
    return Token(TokenKind.QUOTED_NAME, raw[1:-1].replace("``", "`"), "", span)


def _double_quoted(text: str, raw: str, span: Span) -> Token:
    name = raw[1:-1]
    raise SqlParserError(
        f"names are quoted with backquotes and texts with single quotes: write `{name}` or "
        f"'{name}'",
        text,
        span,
    )


def _bytes(text: str, raw: str, span: Span) -> Token:
    digits = raw[2:-1]
    if len(digits) % 2 or re.fullmatch("[0-9a-fA-F]*", digits) is None:
        problem = "X'...' has two digits from 0 to 9 and A to F for each byte"
        raise SqlParserError(problem, text, span)
    return Token(TokenKind.BYTES, digits, "", span)


def _unicode(text: str, raw: str, span: Span) -> Token:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        if code is None:
            problem = r"after \ in U&'...' stand four hexadecimal digits, + and six of them, or \ "
            raise SqlParserError(problem.strip(), text, Span(span.start + 2, span.end))
        return "\\" if code == "\\" else chr(int(code.lstrip("+"), 16))

    value = _UNICODE_ESCAPE.sub(character, raw[3:-1].replace("''", "'"))
    return Token(TokenKind.TEXT, value, "", span)


def _unclosed(text: str, raw: str, span: Span) -> Token:
    if raw == "/*":
        problem = "the comment that begins here is not closed: */ is missing"
    else:
        what = "text" if raw == "'" else "name"
        problem = f"the {what} that begins here is not closed: {raw} is missing"
    raise SqlParserError(problem, text, span)


_MADE: dict[str, Callable[[str, str, Span], Token]] = {
    "word": _word,
    "sign": _sign,
    "text": _text,
    "number": _number,
    "quoted": _quoted_name,
    "double": _double_quoted,
    "bytes": _bytes,
    "unicode": _unicode,
    "open": _unclosed,
}
