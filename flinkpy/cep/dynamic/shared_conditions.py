"""Conditions that many patterns share: each is asked at most once for an event.

Two conditions are the same if they are the same function, or functions that are pickled to the same
bytes, or expressions that are written alike. An expression is taken apart at its ``&`` and ``|``,
so that patterns share parts, too, and so that comparisons of a field with a value are seen
(``event_filter``)."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

from flinkpy.cep.event_conditions import (
    Both,
    Condition,
    Either,
    Holds,
    IsInstance,
    Not,
    OfColumns,
    OfEvent,
)
from flinkpy.cep.pattern import Pattern, Step
from flinkpy.columns.expression import Alias, Call, Column, Expression, Literal
from flinkpy.columns.rowwise import evaluate
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError
from flinkpy.state.snapshots.operator_snapshots import dump_pieces

NO_CONTEXT: Any = None  # for conditions that do not look at it
LARGEST = 1 << 53  # up to here integers and floats compare exactly
_COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">=", "==": "=="}


class Comparison(NamedTuple):
    """A field compared with values: one, or several for ``in``."""

    column: str
    function: str
    values: tuple[Any, ...]


# -- fields of events ------------------------------------------------------------------------------


def field_reader(kind: type, name: str) -> Callable[[Any], Any]:
    """How to read a field of events of this class. One that an event does not have is null."""
    if issubclass(kind, Mapping):
        return lambda event: event.get(name)
    if issubclass(kind, Row):
        return lambda event: _of_row(event, name)
    if issubclass(kind, tuple):
        return attrgetter(name) if name in getattr(kind, "_fields", ()) else lambda event: None
    return lambda event: getattr(event, name, None)


def _of_row(row: Row, name: str) -> Any:
    try:
        return row[name]
    except KeyError:
        return None


class EventFields(Mapping[str, Any]):
    """The fields of an event, for expressions."""

    def __init__(self, event: object) -> None:
        self._event = event

    def __getitem__(self, name: str) -> Any:
        return field_reader(type(self._event), name)(self._event)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0


# -- shared conditions -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Shared(Condition):
    """A condition that patterns share, by its number."""

    number: int
    ask: Callable[[int], Any] = field(compare=False, repr=False)
    comparison: Comparison | None = field(compare=False, default=None)

    def bind(self) -> Holds:
        ask, number = self.ask, self.number
        return lambda event, context: ask(number)


@dataclass
class _Known:
    """A shared condition, and how many patterns have it."""

    shared: Shared
    key: object
    holds: Callable[[Any], Any]
    users: int = 0


class SharedConditions:
    """The conditions of all patterns. ``look_at`` says which event ``ask`` is about."""

    def __init__(self) -> None:
        self._by_key: dict[object, _Known] = {}
        self._known: dict[int, _Known] = {}
        self._holds: dict[int, Callable[[Any], Any]] = {}
        self._answers: dict[int, Any] = {}
        self.event: Any = None
        self._numbers = 0

    def __len__(self) -> int:
        return len(self._known)

    def look_at(self, event: object) -> None:
        """From now on ``ask`` is about this event."""
        self.event = event
        self._answers.clear()

    def ask(self, number: int) -> Any:
        """Whether the event satisfies the condition."""
        answers = self._answers
        if number in answers:
            return answers[number]
        answer = answers[number] = self._holds[number](self.event)
        return answer

    def function_of(self, condition: Condition) -> Callable[[Any], Any]:
        """A condition made of shared ones as a function of the event that they look at."""
        if isinstance(condition, Shared):
            number, holds, answers = condition.number, self._holds[condition.number], self._answers

            def answered(event: Any) -> Any:
                if number in answers:
                    return answers[number]
                answer = answers[number] = holds(event)
                return answer

            return answered
        holds_of = condition.bind()
        return lambda event: holds_of(event, NO_CONTEXT)

    def shared(self, pattern: Pattern) -> tuple[Pattern, tuple[int, ...]]:
        """The pattern with shared conditions in the place of its own, and their numbers, for
        ``release``."""
        used: list[int] = []
        return self._pattern(pattern, used), tuple(used)

    def release(self, numbers: tuple[int, ...]) -> None:
        """A pattern is gone that had these."""
        for number in numbers:
            known = self._known[number]
            known.users -= 1
            if not known.users:
                del self._known[number], self._holds[number], self._by_key[known.key]

    def _pattern(self, pattern: Pattern, used: list[int]) -> Pattern:
        return Pattern(tuple(self._step(step, used) for step in pattern.steps), pattern.skip)

    def _step(self, step: Step, used: list[int]) -> Step:
        return replace(
            step,
            condition=self._condition(step.condition, used),
            until=None if step.until is None else self._condition(step.until, used),
            group=None if step.group is None else self._pattern(step.group, used),
        )

    def _condition(self, condition: Condition, used: list[int]) -> Condition:
        if isinstance(condition, Both | Either):
            return type(condition)(
                self._condition(condition.first, used), self._condition(condition.second, used)
            )
        if isinstance(condition, Not):
            return Not(self._condition(condition.condition, used))
        if isinstance(condition, OfColumns):
            return self._expression(condition.expression, used)
        if isinstance(condition, OfEvent):
            return self._shared(_function_key(condition), condition.of_event(), None, used)
        if isinstance(condition, IsInstance):
            kind = condition.kind
            key = IsInstance, kind
            return self._shared(key, lambda event: isinstance(event, kind), None, used)
        return condition  # it looks at the partial match, or always holds

    def _expression(self, expression: Expression, used: list[int]) -> Condition:
        while isinstance(expression, Alias):
            expression = expression.expression
        if isinstance(expression, Call) and expression.function in ("&", "|"):
            first, second = (self._expression(each, used) for each in expression.arguments)
            return Both(first, second) if expression.function == "&" else Either(first, second)
        comparison = comparison_of(expression)
        holds = _holds(expression) if comparison is None else _compares(expression, comparison)
        return self._shared((OfColumns, repr(expression)), holds, comparison, used)

    def _shared(
        self,
        key: object,
        holds: Callable[[Any], Any],
        comparison: Comparison | None,
        used: list[int],
    ) -> Shared:
        known = self._by_key.get(key)
        if known is None:
            shared = Shared(self._numbers, self.ask, comparison)
            self._numbers += 1
            known = self._by_key[key] = self._known[shared.number] = _Known(shared, key, holds)
            self._holds[shared.number] = holds
        known.users += 1
        used.append(known.shared.number)
        return known.shared


def _function_key(condition: OfEvent) -> object:
    """What two functions have in common that are the same: what they are pickled to."""
    try:
        return OfEvent, dump_pieces("a condition", [(condition.function, condition.given)])[0]
    except ProgramError:
        return OfEvent, condition.function


def _holds(expression: Expression) -> Callable[[Any], Any]:
    return lambda event: evaluate(expression, EventFields(event)) is True


# -- comparisons -----------------------------------------------------------------------------------


def comparison_of(expression: Expression) -> Comparison | None:
    """The comparison of a field with values, if that is what the expression is."""
    if not isinstance(expression, Call):
        return None
    function, arguments = expression.function, expression.arguments
    if function == "in_" and isinstance(arguments[0], Column):
        values = dict(expression.options)["values"]
        if all(map(_is_plain, values)) and len(set(map(_kind, values))) == 1:
            return Comparison(arguments[0].column, "==", tuple(values))
        return None
    if function not in _COMPARES:
        return None
    left, right = arguments
    if isinstance(left, Literal):
        left, right, function = right, left, _MIRRORED[function]
    if not isinstance(left, Column) or not isinstance(right, Literal):
        return None
    value = right.value
    if not _is_plain(value) or (function != "==" and isinstance(value, str | bool)):
        return None
    return Comparison(left.column, function, (value,))


def _is_plain(value: object) -> bool:
    kind = type(value)
    return kind is str or kind is bool or is_plain_number(value)


def _kind(value: object) -> str:
    return "number" if type(value) in (int, float) else type(value).__name__


def is_plain_number(value: Any) -> bool:
    """Whether it is an int or a float that compares with others of these as Python does it."""
    kind = type(value)
    if kind is float:
        return not math.isnan(value)
    return kind is int and -LARGEST <= value <= LARGEST


def _compares(expression: Expression, comparison: Comparison) -> Callable[[Any], Any]:
    """The comparison, without the general way of expressions where both are plain numbers or
    texts."""
    column, function, values = comparison
    compare, generally, value = _COMPARES[function], _holds(expression), values[0]
    kinds = (int, float) if type(value) in (int, float) else (type(value),)
    many = frozenset(values) if len(values) > 1 else None
    readers: dict[type, Callable[[Any], Any]] = {}

    def holds(event: Any) -> Any:
        kind = type(event)
        read = readers.get(kind)
        if read is None:
            read = readers[kind] = field_reader(kind, column)
        given = read(event)
        if type(given) not in kinds or (type(given) is int and not is_plain_number(given)):
            return given is not None and generally(event)
        return compare(given, value) if many is None else given in many

    return holds
