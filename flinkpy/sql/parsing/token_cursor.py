"""Where a parser stands in a statement: what comes next, what would have been possible there, and
the error that says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import NoReturn, Protocol, TypeVar

from flinkpy.sql.parsing.reserved_words import RESERVED
from flinkpy.sql.parsing.sql_tokens import Token, TokenKind
from flinkpy.sql.sql_errors import Span, SqlParserError
from flinkpy.sql.syntax.query_tree import Identifier, Query, SqlExpression

T = TypeVar("T")

_MOST_SHOWN = 4  # of what could stand at a place

_SPOKEN = {",": "a comma", ";": "the end of the statement"}

# Reserved words that go on with a statement where something is missing.
_GO_ON = (
    *("FROM", "WHERE", "GROUP", "HAVING", "ORDER", "BY", "LIMIT", "UNION", "SELECT", "AS", "ON"),
    *("AND", "OR", "IN", "IS", "LIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "END", "EXISTS", "JOIN"),
)


class Grammar(Protocol):
    """What every part of the grammar may need, though it stands above that part."""

    def expression(self, cursor: TokenCursor) -> SqlExpression: ...

    def operand(self, cursor: TokenCursor) -> SqlExpression: ...

    def query(self, cursor: TokenCursor) -> Query: ...


class TokenCursor:
    """The tokens of one statement, and the place of the next. ``start`` before a construct and
    ``span_from(start)`` behind it give the construct's span."""

    def __init__(self, text: str, tokens: Sequence[Token], grammar: Grammar) -> None:
        self.text = text
        self._tokens = tokens
        self._at = 0
        self._grammar = grammar
        self._wanted: set[str] = set()  # words and signs that were looked for at _wanted_at
        self._wanted_at = 0

    # -- the next tokens ---------------------------------------------------------------------------

    @property
    def next(self) -> Token:
        return self._tokens[self._at]

    @property
    def last(self) -> Token:
        """The token before the next one."""
        return self._tokens[max(0, self._at - 1)]

    def ahead(self, distance: int) -> Token:
        """The token that comes after so many others."""
        return self._tokens[min(self._at + distance, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token, and a step."""
        token = self._tokens[self._at]
        if token.kind != TokenKind.END:
            self._at += 1
        return token

    def at_end(self) -> bool:
        """Whether nothing comes next."""
        return self.next.kind == TokenKind.END

    def at(self, *keys: str) -> bool:
        """Whether these words and signs come next."""
        at = self._at
        for key in keys:
            if self._tokens[at].key != key:
                self._note(key, at)
                return False
            at += 1
        return True

    def accept(self, *keys: str) -> bool:
        """Steps over these words and signs if they come next."""
        if not self.at(*keys):
            return False
        self._at += len(keys)
        return True

    def accept_one(self, *keys: str) -> str | None:
        """Steps over the one of these words and signs that comes next."""
        return next((key for key in keys if self.accept(key)), None)

    def expect(self, *keys: str) -> None:
        """Steps over these words and signs, which must come next."""
        for key in keys:
            if not self.accept(key):
                self.unexpected(_listed([key]))

    def expect_one(self, *keys: str) -> str:
        """Steps over the one of these words and signs that must come next."""
        found = self.accept_one(*keys)
        return found if found is not None else self.unexpected(_listed(keys))

    def expect_end(self) -> None:
        """Nothing more may come."""
        if not self.at_end():
            self.unexpected()

    # -- names and texts ---------------------------------------------------------------------------

    def at_name(self) -> bool:
        """Whether a name comes next: in backquotes, or a word that is not reserved."""
        token = self.next
        if token.kind == TokenKind.QUOTED_NAME:
            return True
        return token.kind == TokenKind.WORD and token.key not in RESERVED

    def name(self, what: str = "a name") -> str:
        """A name without dots."""
        if not self.at_name():
            self.unexpected(what, or_name=True)
        return self.take().value

    def identifier(self, what: str = "a name") -> Identifier:
        """A name with dots."""
        start = self.start
        parts = [self.name(what)]
        while self.accept("."):
            parts.append(self.name("a name behind the dot"))
        return Identifier(tuple(parts), span=self.span_from(start))

    def word(self, what: str) -> str:
        """A word that only this place knows, in capital letters."""
        if self.next.kind != TokenKind.WORD:
            self.unexpected(what)
        return self.take().key

    def literal_text(self, what: str) -> str:
        """A text in single quotes."""
        if self.next.kind != TokenKind.TEXT:
            self.unexpected(f"{what} in single quotes")
        return self.take().value

    def whole_number(self, what: str) -> int:
        """A number without sign and point."""
        if self.next.kind != TokenKind.NUMBER or not self.next.value.isdecimal():
            self.unexpected(what)
        return int(self.take().value)

    # -- constructs --------------------------------------------------------------------------------

    def expression(self) -> SqlExpression:
        """An expression of any kind."""
        return self._grammar.expression(self)

    def operand(self) -> SqlExpression:
        """An expression without comparisons, IN, AND and the like."""
        return self._grammar.operand(self)

    def query(self) -> Query:
        """A query, without parentheses round it."""
        return self._grammar.query(self)

    def list_of(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more of a construct, with commas between them."""
        items = [one()]
        while self.accept(","):
            items.append(one())
        return tuple(items)

    def in_parentheses(self, one: Callable[[], T]) -> tuple[T, ...]:
        """One or more of a construct, in parentheses."""
        self.expect("(")
        items = self.list_of(one)
        self.expect(")")
        return items

    def attempt(self, construct: Callable[[], T], otherwise: Callable[[], T]) -> T:
        """The first construct, or the other from the same place. If both fail, the error is that
        of the one that came farther."""
        at = self._at
        try:
            return construct()
        except SqlParserError as error:
            first = error
        self._at = at
        try:
            return otherwise()
        except SqlParserError as error:
            raise (error if error.span.start > first.span.start else first) from None

    # -- places ------------------------------------------------------------------------------------

    @property
    def start(self) -> int:
        """Where the next token begins."""
        return self.next.span.start

    def span_from(self, start: int) -> Span:
        """From there to the end of the last token."""
        return Span(start, self.last.span.end)

    # -- errors ------------------------------------------------------------------------------------

    def fail(self, problem: str, span: Span | None = None) -> NoReturn:
        """The statement is wrong at this place, or at the next token."""
        raise SqlParserError(problem, self.text, self.next.span if span is None else span)

    def unexpected(self, what: str | None = None, *, or_name: bool = False) -> NoReturn:
        """The next token cannot stand here; ``what`` could, and with ``or_name`` a name, too."""
        meant = self._meant_before()
        if meant is not None:
            taken = self.last
            self.fail(f"{taken.value} is taken for a name here. Did you mean {meant}?", taken.span)
        if what is None and self._wanted_at > self._at:
            self._at = self._wanted_at  # a construct began, and did not go on
        expected = what or self._shown_wanted()
        if self.at_end():
            self.fail(f"the statement ends too early; expected {expected or 'more'}")
        found = self._shown(self.next)
        if or_name and self._meant_as_name(what or ""):
            problem = f"expected {what}, but {found} is a reserved word"
            self.fail(f"{problem}; as a name it needs backquotes: `{found}`")
        if expected is not None:
            self.fail(f"expected {expected}, not {found}{self._proposal()}")
        proposal = self._proposal() or f", behind {self._shown(self.last)}"
        self.fail(f"{found} cannot stand here{proposal}")

    def _shown(self, token: Token) -> str:
        return self.text[token.span.start : token.span.end]

    def _meant_as_name(self, what: str) -> bool:
        """Whether the reserved word that comes next was meant as a name, rather than as the word
        with which the statement goes on."""
        word, behind = self.next.key, self.ahead(1)
        if word not in RESERVED or (word, behind.key) in (("ORDER", "BY"), ("GROUP", "BY")):
            return False
        if word != "SELECT" and what.startswith("the name"):
            return True
        ends = behind.key in _GO_ON or behind.kind == TokenKind.END
        signs = behind.kind == TokenKind.SIGN and behind.key not in ("(", "*")
        return word not in _GO_ON or ends or signs

    def _note(self, key: str, at: int) -> None:
        if at > self._wanted_at:
            self._wanted_at = at
            self._wanted.clear()
        if at == self._wanted_at:
            self._wanted.add(key)

    def _wanted_here(self) -> set[str]:
        return self._wanted if self._wanted_at == self._at else set()

    def _shown_wanted(self) -> str | None:
        wanted = sorted(self._wanted_here() - {"."})
        return _listed(wanted) if 0 < len(wanted) <= _MOST_SHOWN else None

    def _proposal(self) -> str:
        nearest = _nearest(self.next, self._wanted_here())
        return "" if nearest is None else f". Did you mean {nearest}?"

    def _meant_before(self) -> str | None:
        """The keyword that the word before this place was meant to be, if it was taken for a
        name."""
        if self._at == 0 or self.last.key in RESERVED:
            return None
        return _nearest(self.last, self._wanted_here())


def _nearest(token: Token, wanted: set[str]) -> str | None:
    if token.kind != TokenKind.WORD or token.key in wanted:
        return None
    words = sorted(key for key in wanted if key[:1].isalpha() and len(key) > 2)
    likeness = 0.88 if token.key in RESERVED else 0.7
    return next(iter(get_close_matches(token.key, words, 1, likeness)), None)


def _listed(keys: Sequence[str]) -> str:
    words = [_SPOKEN.get(key, key) for key in keys]
    if len(words) == 1:
        return words[0]
    return f"{', '.join(words[:-1])} or {words[-1]}"
