"""Comparisons. NaN equals NaN, and is neither less nor greater than a number. Texts are compared as
they are, without padding; parts of rows, arrays and maps that are null equal each other; maps are
equal in any order."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from flinkpy.columns.sql.call_site import CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.logic_meanings import conjunction, disjunction
from flinkpy.columns.sql.sql_meanings.null_rules import always, negated, strict, strictly
from flinkpy.columns.sql.sql_meanings.number_rules import EXACT
from flinkpy.common.logical_types.logical_type import DecimalType, TypeFamily


def equal(left: Any, right: Any) -> bool:
    """Whether two values are equal; parts of them may be null."""
    if left is None or right is None:
        return left is right
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        return bool(left == right or (left != left and right != right))
    if isinstance(left, dict):
        return _equal_maps(left, right)
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(equal, left, right))
    return bool(left == right)


def _equal_maps(left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    if len(left) != len(right):
        return False
    if left.keys() == right.keys():
        return all(equal(value, right[key]) for key, value in left.items())
    rest = list(right.items())
    for key, value in left.items():
        for at, (other_key, other) in enumerate(rest):
            if equal(key, other_key) and equal(value, other):
                del rest[at]
                break
        else:
            return False
    return True


def less(left: Any, right: Any) -> bool:
    """Whether the left value comes before the right one; a row by its first part that differs."""
    if isinstance(left, (list, tuple)):
        return _less_in_order(left, right)
    if isinstance(left, float) or isinstance(right, float):
        return float(left) < float(right)
    return bool(left < right)


def _less_in_order(left: Any, right: Any) -> bool:
    for one, other in zip(left, right):
        if not equal(one, other):
            if one is None or other is None:
                return one is None
            return less(one, other)
    return len(left) < len(right)


def comes_before(left: Any, right: Any) -> bool:
    """Whether the left value stands first in order: NaN comes behind all numbers, and -0.0 before
    0.0."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if left != left or right != right:
            return bool(left == left)
        if left == right:
            return math.copysign(1.0, left) < math.copysign(1.0, right)
    return less(left, right)


def at_most(left: Any, right: Any) -> bool:
    """Less or equal."""
    return less(left, right) or equal(left, right)


def between(site: CallSite) -> Meaning:
    """``value BETWEEN low AND high``; SYMMETRIC takes the bounds in either order."""
    is_symmetric = bool(site.options.get("symmetric"))
    not_greater = strict(at_most)

    def is_between(value: Any, low: Any, high: Any) -> Any:
        found = conjunction(not_greater(low, value), not_greater(value, high))
        if not is_symmetric:
            return found
        return disjunction(found, conjunction(not_greater(high, value), not_greater(value, low)))

    return is_between


def is_in(value: Any, *choices: Any) -> bool | None:
    """Whether the value is one of the choices; unknown if it may be one that is null."""
    if value is None:
        return None if choices else False
    if any(each is not None and equal(value, each) for each in choices):
        return True
    return None if None in choices else False


def _best(is_better: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    def best(*values: Any) -> Any:
        found = values[0]
        for value in values[1:]:
            if is_better(value, found):
                found = value
        return found

    return best


def _of_result(choose: Callable[..., Any]) -> MeaningOf:
    """The chosen value in the type of the result: numbers of several types have a common one."""

    def of_site(site: CallSite) -> Meaning:
        bring = bring_number(site)
        return strict(lambda *values: bring(choose(*values)))

    return of_site


def bring_number(site: CallSite) -> Callable[[Any], Any]:
    """A number of an argument's type in the result's."""
    result = site.result
    if result.is_a(TypeFamily.APPROXIMATE_NUMERIC):
        return lambda value: None if value is None else float(value)
    if isinstance(result, DecimalType):
        unit = Decimal(1).scaleb(-result.scale)
        return lambda value: None if value is None else Decimal(value).quantize(unit, None, EXACT)
    return lambda value: value


COMPARISON_MEANINGS: dict[str, MeaningOf] = {
    "=": strictly(equal),
    "<>": strictly(lambda left, right: not equal(left, right)),
    "<": strictly(less),
    "<=": strictly(at_most),
    ">": strictly(lambda left, right: less(right, left)),
    ">=": strictly(lambda left, right: at_most(right, left)),
    "IS DISTINCT FROM": always(lambda left, right: not equal(left, right)),
    "IS NOT DISTINCT FROM": always(equal),
    "BETWEEN": between,
    "NOT BETWEEN": negated(between),
    "IN": always(is_in),
    "NOT IN": negated(always(is_in)),
    "GREATEST": _of_result(_best(lambda value, found: comes_before(found, value))),
    "LEAST": _of_result(_best(comes_before)),
}
