"""The expressions that plans hold (Rex, for row expression): an input by number, a literal, or a
call. Each has a type; binding has inserted every cast.

Some calls are none of the table of functions, and every reader of plans knows them: CASE
(condition, value, condition, value, ..., otherwise), CAST and TRY_CAST (to the call's type), FIELD
(option ``index``: that part of a row), REINTERPRET (another type of the same value)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.sql_errors import NOWHERE, Span


@dataclass(frozen=True)
class Rex:
    """A typed expression. Its place in the statement does not count when plans are compared."""

    type: LogicalType
    span: Span = field(default=NOWHERE, kw_only=True, compare=False, repr=False)

    @property
    def operands(self) -> tuple[Rex, ...]:
        return ()

    def with_operands(self, operands: tuple[Rex, ...]) -> Rex:
        """The same expression over other operands."""
        return self


@dataclass(frozen=True)
class RexInput(Rex):
    """A column of the input row; for a join, those of the left side come first."""

    index: int = 0

    def __str__(self) -> str:
        return f"${self.index}"


@dataclass(frozen=True)
class RexLiteral(Rex):
    """A constant, as Python's value of the type: int (also months and milliseconds of intervals),
    Decimal, float, str, bytes, bool, date, time, datetime, None."""

    value: object = None

    def __str__(self) -> str:
        return "NULL" if self.value is None else repr(self.value)


@dataclass(frozen=True)
class RexCall(Rex):
    """A function by its name in the registry, with its arguments. ``options`` are words of the call
    that are no values."""

    function: str = ""
    arguments: tuple[Rex, ...] = ()
    options: tuple[tuple[str, object], ...] = ()

    @property
    def operands(self) -> tuple[Rex, ...]:
        return self.arguments

    def with_operands(self, operands: tuple[Rex, ...]) -> Rex:
        return replace(self, arguments=operands)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate over columns of the input by number. ``filter`` is the number of a BOOLEAN
    column; ``order_by`` sorts what it takes (LISTAGG, ARRAY_AGG). ``constants`` has the arguments
    that are constants, by position (they are columns too): a separator, an offset."""

    function: str
    arguments: tuple[int, ...]
    type: LogicalType
    distinct: bool = False
    filter: int | None = None
    order_by: tuple[SortKey, ...] = ()
    options: tuple[tuple[str, object], ...] = ()
    constants: tuple[tuple[int, object], ...] = ()


@dataclass(frozen=True)
class SortKey:
    """A column by number, and how it sorts. Flink's nulls are least: first ascending, last
    descending, unless the text says otherwise."""

    index: int
    descending: bool = False
    nulls_first: bool = True


def walk(rex: Rex) -> Iterator[Rex]:
    """The expression and all within it, each before its operands; without recursion, as plans may
    nest deeply."""
    pending = [rex]
    while pending:
        each = pending.pop()
        yield each
        pending.extend(reversed(each.operands))


def inputs_of(rex: Rex) -> frozenset[int]:
    """The numbers of the columns that it reads."""
    return frozenset(each.index for each in walk(rex) if isinstance(each, RexInput))


def rewritten(rex: Rex, change: Callable[[Rex], Rex]) -> Rex:
    """The expression with ``change`` applied to each part, operands first; without recursion."""
    done: list[Rex] = []
    pending = [(rex, False)]
    while pending:
        each, has_operands = pending.pop()
        count = len(each.operands)
        if count and not has_operands:
            pending.append((each, True))
            pending.extend((operand, False) for operand in reversed(each.operands))
            continue
        if count:
            operands = tuple(done[-count:])
            del done[-count:]
            if any(new is not old for new, old in zip(operands, each.operands)):
                each = each.with_operands(operands)
        done.append(change(each))
    return done[0]


def shifted(rex: Rex, by: int) -> Rex:
    """The expression over inputs that stand ``by`` columns further."""

    def moved(each: Rex) -> Rex:
        return replace(each, index=each.index + by) if isinstance(each, RexInput) else each

    return rewritten(rex, moved)
