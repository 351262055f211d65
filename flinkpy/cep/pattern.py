"""Patterns as programs write them: Flink's Pattern API. A pattern is a value, and each method gives
another pattern. What Flink refuses is refused here, with the program's line."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeAlias

from flinkpy.cep.event_conditions import (
    ALWAYS,
    Always,
    Condition,
    Either,
    IsInstance,
    as_condition,
    both,
)
from flinkpy.cep.skip import AfterMatchSkipStrategy
from flinkpy.common.time import Time, to_milliseconds
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse

Span: TypeAlias = datetime.timedelta | Time


class WithinType(Enum):
    """Between which events ``within`` counts the time."""

    FIRST_AND_LAST = "first and last"
    PREVIOUS_AND_CURRENT = "previous and current"


class Contiguity(Enum):
    """What may stand between two events of a match (Flink's ConsumingStrategy)."""

    STRICT = "next"
    SKIP_TILL_NEXT = "followed by"
    SKIP_TILL_ANY = "followed by any"
    NOT_NEXT = "not next"
    NOT_FOLLOW = "not followed by"

    @property
    def is_negative(self) -> bool:
        return self in (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOW)


class Repetition(Enum):
    """How often a step is taken."""

    ONCE = "once"
    TIMES = "times"
    LOOPING = "looping"


@dataclass(frozen=True)
class Quantifier:
    """How often a step is taken, and what may stand between its events."""

    repetition: Repetition = Repetition.ONCE
    low: int = 1
    high: int = 1
    inner: Contiguity = Contiguity.SKIP_TILL_NEXT
    optional: bool = False
    greedy: bool = False
    within_ms: int | None = None  # between two events of the step


@dataclass(frozen=True)
class Step:
    """One step: a name with a condition, or a group."""

    name: str
    contiguity: Contiguity
    group: Pattern | None = None
    condition: Condition = ALWAYS
    until: Condition | None = None
    quantifier: Quantifier = Quantifier()
    within_ms: int | None = None  # between the first and the last event of a match
    within_previous_ms: int | None = None  # between the event before and the one of this step

    def names(self) -> Iterator[str]:
        if self.group is None:
            yield self.name
        else:
            yield from self.group.names()


GROUP = "group"  # the name of a step that is a group
_OPTIONAL_BEFORE_NOT = (
    "a not_ step cannot follow a step that is optional; write two patterns, one with and one "
    "without the optional step"
)


class Picture(Protocol):
    """What is drawn: ``str`` gives it as text, and a notebook shows the picture."""

    def svg(self) -> str:
        """The picture, for a file."""

    def _repr_svg_(self) -> str: ...


class Pattern:
    """A sequence of events to look for.

    >>> pattern = (
    ...     Pattern.begin("small").where(lambda amount: amount < 1)
    ...     .next("big").where(lambda amount: amount > 500)
    ... )
    >>> pattern.names()
    ['small', 'big']
    """

    __slots__ = ("skip", "steps")

    # Makes the picture of the automaton. ``flinkpy.cep`` sets it: a pattern is a value that knows
    # nothing of what it is compiled to.
    picture_of: ClassVar[Callable[[Pattern], Picture]]

    def __init__(self, steps: tuple[Step, ...], skip: AfterMatchSkipStrategy) -> None:
        self.steps, self.skip = steps, skip

    @staticmethod
    def begin(first: str | Pattern, skip: AfterMatchSkipStrategy | None = None) -> Pattern:
        """The first step: a name, or a pattern as a group. ``skip`` says what is dropped after a
        match."""
        if skip is not None and not isinstance(skip, AfterMatchSkipStrategy):
            raise refuse(f"begin(...): {skip!r:.80} is no AfterMatchSkipStrategy")
        empty = Pattern((), AfterMatchSkipStrategy.no_skip() if skip is None else skip)
        return empty._then(first, Contiguity.STRICT)

    def next(self, step: str | Pattern) -> Pattern:
        """Appends a step whose event comes directly after the one before."""
        return self._then(step, Contiguity.STRICT)

    def followed_by(self, step: str | Pattern) -> Pattern:
        """Appends a step; events between that do not match are ignored."""
        return self._then(step, Contiguity.SKIP_TILL_NEXT)

    def followed_by_any(self, step: str | Pattern) -> Pattern:
        """Appends a step; events between are ignored, also those that match."""
        return self._then(step, Contiguity.SKIP_TILL_ANY)

    def not_next(self, name: str) -> Pattern:
        """The event directly after the one before must not be of this step."""
        return self._then_not(name, Contiguity.NOT_NEXT)

    def not_followed_by(self, name: str) -> Pattern:
        """No event of this step may come before the next step; at the end of a pattern that has a
        ``within``: before the time is up."""
        return self._then_not(name, Contiguity.NOT_FOLLOW)

    # -- conditions --------------------------------------------------------------------------------

    def where(self, condition: Any) -> Pattern:
        """What the event has to satisfy: a function of the event, or of event and context; or an
        expression. Several calls: all of them."""
        step = self.steps[-1]
        given = as_condition(condition, "where(...)")
        return self._last(condition=both(step.condition, given))

    def or_(self, condition: Any) -> Pattern:
        """Another condition that is enough."""
        condition, before = as_condition(condition, "or_(...)"), self.steps[-1].condition
        return self._last(
            condition=condition if isinstance(before, Always) else Either(before, condition)
        )

    def subtype(self, kind: type) -> Pattern:
        """Only events of this class."""
        if not isinstance(kind, type):
            raise refuse(f"subtype(...) takes a class, this is {kind!r:.80}")
        return self._last(condition=both(self.steps[-1].condition, IsInstance(kind)))

    def until(self, condition: Any) -> Pattern:
        """An event that ends the loop: nothing is taken any more."""
        step = self.steps[-1]
        if step.until is not None:
            raise _malformed("until(...) was called twice for one step")
        if step.quantifier.repetition is not Repetition.LOOPING:
            raise _malformed("until(...) belongs behind one_or_more() or times_or_more(n)")
        return self._last(until=as_condition(condition, "until(...)"))

    # -- quantifiers -------------------------------------------------------------------------------

    def one_or_more(self, within: Span | None = None) -> Pattern:
        """The step is taken at least once. ``within``: between two of its events."""
        return self._quantified(Repetition.LOOPING, 1, 1, within)

    def times(self, low: int, high: int | None = None, within: Span | None = None) -> Pattern:
        """The step is taken ``low`` times, or ``low`` to ``high`` times."""
        if high is None and low < 1:
            raise _malformed(f"times({low}): a step is taken at least once")
        if high is not None and not (0 <= low <= high and high > 0):
            raise _malformed(f"times({low}, {high}) is no range of numbers")
        if low == 0:
            quantified = self._quantified(Repetition.TIMES, 1, high or 1, within)
            return quantified._with_quantifier(optional=True)
        return self._quantified(Repetition.TIMES, low, low if high is None else high, within)

    def times_or_more(self, times: int, within: Span | None = None) -> Pattern:
        """The step is taken at least so often."""
        if times < 1:
            raise _malformed(f"times_or_more({times}): a step is taken at least once")
        return self._quantified(Repetition.LOOPING, times, times, within)

    def optional(self) -> Pattern:
        """The step may be left out."""
        step = self.steps[-1]
        if len(self.steps) > 1 and self.steps[-2].quantifier.greedy:
            raise _malformed("a step that is optional cannot follow one that is greedy")
        if step.quantifier.optional:
            raise _malformed("optional() was called twice for one step, or after times(0, n)")
        if step.contiguity.is_negative:
            raise _malformed("a not_ step cannot be optional")
        return self._with_quantifier(optional=True)

    def greedy(self) -> Pattern:
        """The step takes as many events as it can."""
        self._check_no_not("greedy()")
        step = self.steps[-1]
        if step.group is not None:
            raise _malformed("greedy() is not there for groups")
        if step.quantifier.inner is Contiguity.SKIP_TILL_ANY:
            raise _malformed("greedy() and allow_combinations() exclude each other")
        if step.quantifier.repetition is Repetition.ONCE:
            raise _malformed("greedy() belongs behind times, one_or_more or times_or_more")
        return self._with_quantifier(greedy=True)

    def allow_combinations(self) -> Pattern:
        """Events of the step that match may be left out between others."""
        self._check_inner("allow_combinations()")
        return self._with_quantifier(inner=Contiguity.SKIP_TILL_ANY)

    def consecutive(self) -> Pattern:
        """No other events stand between those of the step."""
        self._check_inner("consecutive()")
        return self._with_quantifier(inner=Contiguity.STRICT)

    # -- time --------------------------------------------------------------------------------------

    def within(self, span: Span, within_type: WithinType = WithinType.FIRST_AND_LAST) -> Pattern:
        """How much time a match may take: from its first event to the last, for all steps, or from
        the event before to the one of this step. A match that takes exactly so long is too
        long."""
        if within_type is WithinType.FIRST_AND_LAST:
            return self._last(within_ms=_milliseconds(span, "within(...)"))
        if within_type is WithinType.PREVIOUS_AND_CURRENT:
            return self._last(within_previous_ms=_milliseconds(span, "within(...)"))
        raise refuse(f"within(...): {within_type!r:.80} is no WithinType")

    # -- what it is made of ------------------------------------------------------------------------

    def names(self) -> list[str]:
        """The names of all steps, those of groups included."""
        return [name for step in self.steps for name in step.names()]

    def with_skip(self, skip: AfterMatchSkipStrategy) -> Pattern:
        """The same steps with another skip strategy."""
        return Pattern(self.steps, skip)

    def draw(self) -> Picture:
        """The automaton that the pattern is compiled to: as text, a line for each transition, and
        as a picture in a notebook.

        >>> print(Pattern.begin("a").next("b").draw())
        a  (start)
          take     -> b
        b
          take     -> match
        """
        return Pattern.picture_of(self)

    def __repr__(self) -> str:
        return " ".join(_shown(step, at) for at, step in enumerate(self.steps))

    def _then(self, step: str | Pattern, contiguity: Contiguity) -> Pattern:
        if isinstance(step, Pattern):
            added = Step(GROUP, contiguity, step)
        elif isinstance(step, str) and step:
            added = Step(step, contiguity)
        else:
            raise refuse(f"a step has a name or is a Pattern; this is {step!r:.80}")
        known = set(self.names())
        for name in added.names():
            if name in known:
                raise _malformed(
                    f"the name {name!r} stands twice in the pattern; give each step its own"
                )
        return Pattern((*self.steps, added), self.skip)

    def _then_not(self, name: str, contiguity: Contiguity) -> Pattern:
        if not isinstance(name, str):
            raise refuse(f"a not_ step has a name and is no group; this is {name!r:.80}")
        if self.steps[-1].quantifier.optional:
            raise _malformed(_OPTIONAL_BEFORE_NOT)
        return self._then(name, contiguity)

    def _last(self, **changed: Any) -> Pattern:
        return Pattern((*self.steps[:-1], replace(self.steps[-1], **changed)), self.skip)

    def _with_quantifier(self, **changed: Any) -> Pattern:
        return self._last(quantifier=replace(self.steps[-1].quantifier, **changed))

    def _quantified(
        self, repetition: Repetition, low: int, high: int, within: Span | None
    ) -> Pattern:
        self._check_no_not("a quantifier")
        if self.steps[-1].quantifier.repetition is not Repetition.ONCE:
            raise _malformed("a step has one quantifier: times, one_or_more or times_or_more")
        span = None if within is None else _milliseconds(within, "within=")
        # what was said before is forgotten, as in Flink: write optional() and greedy() behind it
        return self._last(quantifier=Quantifier(repetition, low, high, within_ms=span))

    def _check_no_not(self, what: str) -> None:
        if self.steps[-1].contiguity.is_negative:
            raise _malformed(f"{what} is not there for not_ steps")

    def _check_inner(self, call: str) -> None:
        quantifier = self.steps[-1].quantifier
        if quantifier.repetition is Repetition.ONCE:
            raise _malformed(f"{call} belongs behind times, one_or_more or times_or_more")
        if quantifier.inner is not Contiguity.SKIP_TILL_NEXT:
            raise _malformed(
                f"{call}: a step has one of allow_combinations() and consecutive(), once"
            )


class MalformedPatternError(ProgramError):
    """The pattern means nothing, or what it means cannot be found."""


def _malformed(message: str) -> MalformedPatternError:
    return MalformedPatternError(str(refuse(message)))


def malformed(message: str) -> MalformedPatternError:
    """The error for a pattern, with the program's line."""
    return _malformed(message)


def _milliseconds(span: object, call: str) -> int:
    if not isinstance(span, datetime.timedelta | Time):
        raise refuse(f"{call} takes a timedelta, a Duration or a Time; this is {span!r:.80}")
    milliseconds = to_milliseconds(span)
    if milliseconds < 0:
        raise refuse(f"{call}: {span!r} is less than nothing")
    return milliseconds


def _shown(step: Step, at: int) -> str:
    begin = "" if at == 0 else f"{step.contiguity.value} "
    what = step.name if step.group is None else f"({step.group!r})"
    quantifier = step.quantifier
    many = ""
    if quantifier.repetition is Repetition.LOOPING:
        many = "+" if quantifier.low == 1 else f"{{{quantifier.low},}}"
    elif quantifier.repetition is Repetition.TIMES:
        many = f"{{{quantifier.low},{quantifier.high}}}"
    words = [
        word
        for word, said in (
            ("optional", quantifier.optional),
            ("greedy", quantifier.greedy),
            ("consecutive", quantifier.inner is Contiguity.STRICT),
            ("combinations", quantifier.inner is Contiguity.SKIP_TILL_ANY),
        )
        if said
    ]
    return begin + what + many + "".join(f" {word}" for word in words)
