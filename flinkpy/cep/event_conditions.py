"""What an event has to satisfy: functions of the event, functions of the event and the events
before it (iterative conditions), expressions of columns, and what is made of these.

A condition is a value. ``bind`` gives the function that the automaton calls."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flinkpy.columns.expression import Expression
from flinkpy.columns.rowwise import evaluate
from flinkpy.core.codegen.idle_results import TRUTHS, look_at_truth
from flinkpy.core.codegen.inlining import gives_a_truth, inlined
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.core.program.program_line import refuse


class ConditionContext(Protocol):
    """What a condition of two arguments can ask for."""

    def get_events_for_pattern(self, name: str) -> list[Any]:
        """The events that this partial match has taken under the name so far, in their order."""

    def timestamp(self) -> int:
        """The event's timestamp; in processing time, when it came."""

    def current_processing_time(self) -> int:
        """The machine's time in milliseconds."""


class IterativeCondition(ABC):
    """A condition as a class, for an event and the events before it."""

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext) -> bool:
        """Whether the event is accepted."""


class SimpleCondition(IterativeCondition):
    """A condition as a class, for an event alone."""

    @abstractmethod
    def filter(self, value: Any, ctx: ConditionContext | None = None) -> bool:
        """Whether the event is accepted."""


Holds = Callable[[Any, ConditionContext], Any]


class Condition(ABC):
    """A condition as the automaton has it."""

    @abstractmethod
    def bind(self) -> Holds:
        """The condition as a function of event and context."""

    @property
    def functions(self) -> tuple[object, ...]:
        """The program's own functions in it, which are opened and closed with the operator."""
        return ()

    @property
    def asks_for_context(self) -> bool:
        """Whether it looks at more than the event."""
        return False


@dataclass(frozen=True)
class Always(Condition):
    """Every event."""

    def bind(self) -> Holds:
        return lambda event, context: True

    def __repr__(self) -> str:
        return "any event"


ALWAYS = Always()


@dataclass(frozen=True)
class OfEvent(Condition):
    """A function of the event."""

    function: Callable[[Any], Any]
    given: object = None  # the object whose method it is

    def of_event(self) -> Callable[[Any], Any]:
        """The condition as a function of the event."""
        function = self.function
        expression = inlined(function, "event")
        if expression is not None and gives_a_truth(expression):
            return function

        def holds(event: Any) -> Any:
            truth = function(event)
            if truth and truth is not True and type(truth) not in TRUTHS:
                look_at_truth(truth)
            return truth

        return holds

    def bind(self) -> Holds:
        function = self.of_event()
        return lambda event, context: function(event)

    @property
    def functions(self) -> tuple[object, ...]:
        return (self.function if self.given is None else self.given,)

    def __repr__(self) -> str:
        return shown_function(self.function)


@dataclass(frozen=True)
class OfEventAndContext(Condition):
    """A function of the event and the events before it."""

    function: Callable[[Any, Any], Any]
    given: object = None

    def bind(self) -> Holds:
        function = self.function

        def holds(event: Any, context: ConditionContext) -> Any:
            truth = function(event, context)
            if truth and truth is not True and type(truth) not in TRUTHS:
                look_at_truth(truth)
            return truth

        return holds

    @property
    def functions(self) -> tuple[object, ...]:
        return (self.function if self.given is None else self.given,)

    @property
    def asks_for_context(self) -> bool:
        return True

    def __repr__(self) -> str:
        return shown_function(self.function)


@dataclass(frozen=True, eq=False)
class OfColumns(Condition):
    """An expression of the event's fields; null is no. Two are the same condition if they have the
    same expression: to compare expressions makes another one."""

    expression: Expression

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OfColumns) and self.expression is other.expression

    def __hash__(self) -> int:
        return hash(self.expression)

    def bind(self) -> Holds:
        expression = self.expression
        return lambda event, context: evaluate(expression, fields_of(event)) is True

    def __repr__(self) -> str:
        return repr(self.expression)


@dataclass(frozen=True)
class IsInstance(Condition):
    """Events of a class."""

    kind: type

    def bind(self) -> Holds:
        kind = self.kind
        return lambda event, context: isinstance(event, kind)

    def __repr__(self) -> str:
        return f"is a {self.kind.__name__}"


@dataclass(frozen=True)
class TwoConditions(Condition):
    """A condition made of two others."""

    first: Condition
    second: Condition

    @property
    def functions(self) -> tuple[object, ...]:
        return self.first.functions + self.second.functions

    @property
    def asks_for_context(self) -> bool:
        return self.first.asks_for_context or self.second.asks_for_context


@dataclass(frozen=True)
class Both(TwoConditions):
    """Both conditions; the second is asked only if the first holds."""

    def bind(self) -> Holds:
        first, second = self.first.bind(), self.second.bind()
        return lambda event, context: first(event, context) and second(event, context)

    def __repr__(self) -> str:
        return f"({self.first!r} and {self.second!r})"


@dataclass(frozen=True)
class Either(TwoConditions):
    """One of two conditions; the second is asked only if the first does not hold."""

    def bind(self) -> Holds:
        first, second = self.first.bind(), self.second.bind()
        return lambda event, context: first(event, context) or second(event, context)

    def __repr__(self) -> str:
        return f"({self.first!r} or {self.second!r})"


@dataclass(frozen=True)
class Not(Condition):
    """The opposite."""

    condition: Condition

    def bind(self) -> Holds:
        holds = self.condition.bind()
        return lambda event, context: not holds(event, context)

    @property
    def functions(self) -> tuple[object, ...]:
        return self.condition.functions

    @property
    def asks_for_context(self) -> bool:
        return self.condition.asks_for_context

    def __repr__(self) -> str:
        return f"not {self.condition!r}"


def both(first: Condition, second: Condition) -> Condition:
    """Both conditions, without those that always hold."""
    if isinstance(first, Always):
        return second
    return first if isinstance(second, Always) else Both(first, second)


def as_condition(given: object, call: str) -> Condition:
    """What a program gives as a condition. Refuses what is none, with the program's line."""
    if isinstance(given, Condition):
        return given
    if isinstance(given, Expression):
        return OfColumns(given)
    refuse_coroutines(given, call)
    method = getattr(given, "filter", None)
    if callable(method) and not isinstance(given, type):
        takes_one = isinstance(given, SimpleCondition) or _arguments(method, call) == 1
        return OfEvent(method, given) if takes_one else OfEventAndContext(method, given)
    if inspect.isgeneratorfunction(given):
        raise refuse(
            f"{call}: {shown_function(given)} is a generator, which would always count as true: "
            "return instead of yield"
        )
    if not callable(given):
        raise refuse(
            f"{call}: {given!r:.80} is no condition; give a function of the event, or of the event "
            'and a context, or an expression such as col("price") > 5'
        )
    return OfEvent(given) if _arguments(given, call) == 1 else OfEventAndContext(given)


def _arguments(function: Callable[..., Any], call: str) -> int:
    """One or two: how many arguments the condition has to be given."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some builtins nobody knows
        return 1
    positional = [
        each
        for each in parameters
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    needed = [each for each in positional if each.default is each.empty]
    if len(needed) == 2:
        return 2
    if len(needed) == 1 or (positional and not needed):
        return 1
    raise refuse(
        f"{call}: {shown_function(function)} takes {len(needed)} arguments; a condition takes the "
        "event, or the event and a context"
    )


def shown_function(function: object) -> str:
    """How messages and pictures name a function."""
    return str(getattr(function, "__qualname__", repr(function))).rpartition("<locals>.")[2]


def fields_of(event: Any) -> Mapping[str, Any]:
    """The event's fields by name, for expressions: those of a Row, a mapping, a named tuple, or an
    object."""
    if isinstance(event, Mapping):
        return event
    as_dict = getattr(event, "as_dict", None)
    if as_dict is None:
        return _Attributes(event)
    fields: Mapping[str, Any] = as_dict()
    return fields


class _Attributes(Mapping[str, Any]):
    """The attributes of an object, whether it has a dict, slots or properties."""

    def __init__(self, event: object) -> None:
        self._event = event

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._event, name)
        except AttributeError:
            raise KeyError(
                f"an event of the class {type(self._event).__name__} has no field {name!r}"
            ) from None

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0
