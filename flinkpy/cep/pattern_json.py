"""Patterns as JSON, with expressions as conditions: for patterns that come from outside the
program. Nothing in it is executed, and what it says goes through the methods of ``Pattern``, so
what these refuse is refused here, too."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from typing import Any

from flinkpy.cep.event_conditions import ALWAYS, Always, Both, Condition, Either, OfColumns
from flinkpy.cep.pattern import Contiguity, Pattern, Quantifier, Repetition, Step, WithinType
from flinkpy.cep.skip import AfterMatchSkipStrategy, SkipKind
from flinkpy.columns.written_expressions import expression_of_text, text_of_expression
from flinkpy.core.errors import ProgramError

Json = dict[str, Any]


def pattern_to_json(pattern: Pattern) -> str:
    """The pattern as JSON. Raises ProgramError for conditions that are no expressions."""
    return json.dumps(described(pattern))


def pattern_from_json(text: str) -> Pattern:
    """The pattern that the JSON says. Raises ProgramError if it says none."""
    try:
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProgramError(f"{text!r:.200} is no JSON: {error}") from None
    return pattern_of(said)


# -- writing ---------------------------------------------------------------------------------------


def described(pattern: Pattern) -> Json:
    """The pattern as dicts and lists."""
    skip = pattern.skip
    said: Json = {"steps": [_step_said(step) for step in pattern.steps]}
    if skip.kind is not SkipKind.NO_SKIP:
        said["skip"] = {"kind": skip.kind.value}
        if skip.pattern_name is not None:
            said["skip"]["name"] = skip.pattern_name
            said["skip"]["throws_on_miss"] = skip.throws_on_miss
    return said


def _step_said(step: Step) -> Json:
    said: Json = {"contiguity": step.contiguity.value}
    if step.group is None:
        said["name"] = step.name
    else:
        said["group"] = described(step.group)
    if not isinstance(step.condition, Always):
        said["where"] = _condition_said(step.condition)
    if step.until is not None:
        said["until"] = _condition_said(step.until)
    if step.quantifier != Quantifier():
        said["quantifier"] = _quantifier_said(step.quantifier)
    for name in ("within_ms", "within_previous_ms"):
        if getattr(step, name) is not None:
            said[name] = getattr(step, name)
    return said


def _quantifier_said(quantifier: Quantifier) -> Json:
    said: Json = {"repetition": quantifier.repetition.value}
    if quantifier.repetition is not Repetition.ONCE:
        said.update(low=quantifier.low, high=quantifier.high, inner=quantifier.inner.value)
    said.update(optional=quantifier.optional, greedy=quantifier.greedy)
    if quantifier.within_ms is not None:
        said["within_ms"] = quantifier.within_ms
    return said


def _condition_said(condition: Condition) -> Any:
    if isinstance(condition, OfColumns):
        return text_of_expression(condition.expression)
    if isinstance(condition, Both | Either):
        both = [_condition_said(condition.first), _condition_said(condition.second)]
        return {"all" if isinstance(condition, Both) else "any": both}
    raise ProgramError(
        f"the condition {condition!r} cannot be written as JSON: only expressions can, such as "
        "col('price') > 5"
    )


# -- reading ---------------------------------------------------------------------------------------


def pattern_of(said: object) -> Pattern:
    """The pattern that dicts and lists describe."""
    try:
        return _pattern(said)
    except RecursionError:
        raise ProgramError("the pattern is nested too deep") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ProgramError(f"{said!r:.200} describes no pattern: {error!r}") from None


def _pattern(said: Any) -> Pattern:
    pattern: Pattern | None = None
    for step in said["steps"]:
        pattern = _with_step(pattern, step, _skip(said.get("skip")))
    if pattern is None:
        raise ProgramError("a pattern has at least one step")
    return pattern


def _skip(said: Mapping[str, Any] | None) -> AfterMatchSkipStrategy:
    if said is None:
        return AfterMatchSkipStrategy.no_skip()
    kind = SkipKind(said["kind"])
    name = said.get("name")
    if (kind in (SkipKind.TO_FIRST, SkipKind.TO_LAST)) != isinstance(name, str):
        raise ProgramError("skip to first and skip to last have a name, the others have none")
    return AfterMatchSkipStrategy(kind, name, said.get("throws_on_miss", False) is True)


def _with_step(before: Pattern | None, said: Json, skip: AfterMatchSkipStrategy) -> Pattern:
    what: Any = _pattern(said["group"]) if "group" in said else said["name"]
    contiguity = Contiguity(said.get("contiguity", "next"))
    if before is None:
        pattern = Pattern.begin(what, skip)
    else:
        append = {
            Contiguity.STRICT: before.next,
            Contiguity.SKIP_TILL_NEXT: before.followed_by,
            Contiguity.SKIP_TILL_ANY: before.followed_by_any,
            Contiguity.NOT_NEXT: before.not_next,
            Contiguity.NOT_FOLLOW: before.not_followed_by,
        }[contiguity]
        pattern = append(what)
    if "where" in said:
        pattern = pattern.where(_condition(said["where"]))
    if "quantifier" in said:
        pattern = _quantified(pattern, said["quantifier"])
    if "until" in said:
        pattern = pattern.until(_condition(said["until"]))
    if "within_ms" in said:
        pattern = pattern.within(_span(said["within_ms"]))
    if "within_previous_ms" in said:
        pattern = pattern.within(_span(said["within_previous_ms"]), WithinType.PREVIOUS_AND_CURRENT)
    return pattern


def _quantified(pattern: Pattern, said: Json) -> Pattern:
    repetition = Repetition(said["repetition"])
    within = _span(said["within_ms"]) if "within_ms" in said else None
    if repetition is Repetition.LOOPING:
        pattern = pattern.times_or_more(_whole(said["low"]), within)
    elif repetition is Repetition.TIMES:
        pattern = pattern.times(_whole(said["low"]), _whole(said["high"]), within)
    inner = Contiguity(said.get("inner", Contiguity.SKIP_TILL_NEXT.value))
    if inner is Contiguity.STRICT:
        pattern = pattern.consecutive()
    elif inner is Contiguity.SKIP_TILL_ANY:
        pattern = pattern.allow_combinations()
    if said.get("optional"):
        pattern = pattern.optional()
    return pattern.greedy() if said.get("greedy") else pattern


def _condition(said: Any) -> Condition:
    if isinstance(said, str):
        return OfColumns(expression_of_text(said))
    kinds: tuple[tuple[str, type[Both | Either]], ...] = (("all", Both), ("any", Either))
    for word, kind in kinds:
        if word in said:
            first, *others = map(_condition, said[word])
            for other in others:
                first = kind(first, other)
            return first
    return ALWAYS if said == {} else _no_condition(said)


def _no_condition(said: object) -> Condition:
    raise ProgramError(f"{said!r:.100} is no condition; write an expression as a text")


def _span(milliseconds: object) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=_whole(milliseconds))


def _whole(number: object) -> int:
    if isinstance(number, bool) or not isinstance(number, int):
        raise ProgramError(f"{number!r:.40} is no whole number")
    return number
