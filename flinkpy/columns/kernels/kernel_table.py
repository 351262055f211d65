"""How each function of expressions is computed for whole columns.

A kernel is chosen by the operands' types: ``KERNELS[name](types, **options)`` gives the function over arrays (and scalars, where an operand is
constant), or raises TypeError. Their common meaning, one row at a time, stands in ``flinkpy.columns.rowwise``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.casts import cast
from flinkpy.columns.kernels.decimals import capped, with_room
from flinkpy.columns.kernels.operand_types import FLOAT, INT, TEXT, BeyondSigned, Types, bring, common_number, is_text, wide

Kernel: TypeAlias = Callable[..., Any]

_BOOL, _ANY_INT = pa.bool_(), pa.decimal128(20, 0)
_FARTHEST = (1 << 62) - 1  # character of a text


# -- bringing operands to common types -------------------------------------------------------------------------------------


def _common(types: Types) -> Any:
    """The type all operands can be brought to: one kind of numbers, text, or what they all are."""
    known = [kind for kind in types if not pa.types.is_null(kind)]
    if not known:
        return pa.null()
    if all(is_text(kind) for kind in known):
        return TEXT
    if all(pa.types.is_timestamp(kind) for kind in known) and len({kind.tz is None for kind in known}) == 1:  # zones only say how moments are shown
        return pa.timestamp("us", known[0].tz) if len(set(known)) > 1 else known[0]
    if all(kind == known[0] for kind in known) and not pa.types.is_integer(known[0]) and not pa.types.is_floating(known[0]):
        return known[0]
    try:
        return common_number(known)
    except TypeError:
        raise TypeError("they are of different kinds") from None


def _brought(kernel: Kernel, types: Types, wanted: Any) -> Kernel:
    """The kernel behind casts of those operands that need one."""
    casts = [bring(kind, wanted) for kind in types]
    if not any(casts):
        return kernel
    if len(casts) == 2 and casts[0] is not None and casts[1] is None:  # a column and a constant, mostly
        first = casts[0]
        return lambda left, right: kernel(first(left), right)
    return lambda *values: kernel(*[value if cast is None else cast(value) for cast, value in zip(casts, values)])


# -- arithmetic ------------------------------------------------------------------------------------------------------------


def _arithmetic(operation: str, checked: Kernel, floating: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = common_number(types)
        if pa.types.is_decimal(wanted):
            return checked if any(map(pa.types.is_null, types)) else capped(operation, types) or checked
        return _brought(floating if wanted == FLOAT else checked, types, wanted)
    return choose


def _plus(types: Types) -> Kernel:
    if all(is_text(kind) or pa.types.is_null(kind) for kind in types) and any(map(is_text, types)):
        return _concat(types)
    if any(pa.types.is_temporal(kind) for kind in types):
        return pc.add_checked  # type: ignore[no-any-return]
    return _arithmetic("+", pc.add_checked, pc.add)(types)


def _minus(types: Types) -> Kernel:
    if any(pa.types.is_temporal(kind) for kind in types):
        return pc.subtract_checked  # type: ignore[no-any-return]
    return _arithmetic("-", pc.subtract_checked, pc.subtract)(types)


def _divide(types: Types) -> Kernel:
    for kind in types:
        wide(kind)
    return _brought(pc.divide, types, FLOAT)


def _modulo(types: Types) -> Kernel:
    """numpy has the remainder with the divisor's sign; of a constant divisor it divides by multiplication."""
    wanted = common_number(types)
    if pa.types.is_decimal(wanted):
        raise TypeError("% of decimals is not there; cast them to DOUBLE")
    return _brought(_integer_modulo if wanted == INT else _float_modulo, types, wanted)


def _integer_modulo(left: Any, right: Any) -> Any:
    if isinstance(right, pa.Scalar):
        divisor, missing = right.as_py(), left.is_null() if left.null_count else None
        if divisor is None:
            return pa.nulls(len(left), INT)
        if divisor == 0:
            if left.null_count == len(left):
                return pa.nulls(len(left), INT)
            raise ZeroDivisionError("integer modulo by zero")
        values = _numpy(left, 0)
        return _masked(values - values // divisor * divisor if divisor not in (-1, 1) else np.zeros_like(values), missing)
    length, missing = len(right), pc.is_null(pc.add(left, right))
    values, divisors = (left.as_py() or 0) if isinstance(left, pa.Scalar) else _numpy(left, 0), _numpy(pc.if_else(missing, 1, right), 1)
    if not divisors.all():
        raise ZeroDivisionError("integer modulo by zero")
    with np.errstate(over="ignore"):
        return _masked(np.broadcast_to(np.remainder(values, divisors), length), missing)


def _float_modulo(left: Any, right: Any) -> Any:
    length = len(right) if isinstance(left, pa.Scalar) else len(left)
    missing = pc.is_null(pc.add(left, right))
    values, divisors = [_none_to_nan(each.as_py()) if isinstance(each, pa.Scalar) else _numpy(each, float("nan")) for each in (left, right)]
    with np.errstate(all="ignore"):
        result = np.broadcast_to(np.remainder(values, divisors), length)
    return _masked(result, pa.repeat(missing, length) if isinstance(missing, pa.Scalar) else missing)


def _none_to_nan(value: Any) -> float:
    return float("nan") if value is None else float(value)


def _numpy(values: Any, instead_of_null: Any) -> Any:
    return (values.fill_null(instead_of_null) if values.null_count else values).to_numpy()


def _masked(values: Any, missing: Any) -> Any:
    """The numpy array as an Arrow one, null where ``missing``."""
    array = pa.array(values)
    return array if missing is None else pc.if_else(missing, pa.scalar(None, array.type), array)


def _of_number(checked: Kernel, floating: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = common_number(types)
        return _brought(floating if wanted == FLOAT else checked, types, wanted)
    return choose


def _of_float(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wide(types[0])
        return _brought(kernel, types, FLOAT)
    return choose


def _sign(types: Types) -> Kernel:
    wanted = common_number([*types, INT])  # a decimal has room for 1
    return _brought(lambda values: pc.sign(values).cast(wanted), types, wanted)


def _to_whole(kernel: Kernel) -> Callable[[Types], Kernel]:
    """floor and ceil: integers are whole already."""
    def choose(types: Types) -> Kernel:
        wanted = wide(types[0])
        if pa.types.is_decimal(wanted):
            return with_room(kernel, wanted)
        return _brought((lambda values: values) if wanted == INT else kernel, types, wanted)
    return choose


def _round(types: Types, places: int) -> Kernel:
    wanted = wide(types[0])
    if wanted == INT and places >= 0:
        return _brought(lambda values: values, types, INT)

    def rounded(values: Any) -> Any:
        return pc.round(values, ndigits=places, round_mode="half_towards_infinity")

    return with_room(rounded, wanted) if pa.types.is_decimal(wanted) else _brought(rounded, types, wanted)


# -- comparison, logic -----------------------------------------------------------------------------------------------------


def _comparison(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        wanted = _common(types)
        if pa.types.is_null(wanted):
            return lambda left, right: pa.nulls(len(left) if isinstance(left, pa.Array) else len(right), _BOOL)
        brought = _brought(kernel, types, wanted)
        return _also_large(brought, _brought(kernel, types, _ANY_INT)) if wanted == INT and pa.uint64() in types else brought
    return choose


def _also_large(kernel: Kernel, exact: Kernel) -> Kernel:
    """Whole numbers from 2**63 on are compared as decimals."""
    def either(*values: Any) -> Any:
        try:
            return kernel(*values)
        except BeyondSigned:
            return exact(*values)
    return either


def _logic(kernel: Kernel) -> Callable[[Types], Kernel]:
    def choose(types: Types) -> Kernel:
        if not all(pa.types.is_boolean(kind) or pa.types.is_null(kind) for kind in types):
            raise TypeError("it needs truth values; put parentheses around comparisons")
        return _brought(kernel, types, _BOOL)
    return choose


def _in(types: Types, values: tuple[Any, ...]) -> Kernel:
    choices = pa.array(values)
    wanted = _common([types[0], choices.type])
    if wanted == INT and pa.types.is_uint64(types[0]):
        wanted = _ANY_INT
    choices = choices.cast(wanted)
    if pa.types.is_floating(wanted):  # Arrow looks up bits: a not-a-number is equal to none, and one zero to the other
        choices = choices.filter(pc.equal(choices, choices))
        if pc.any(pc.equal(choices, 0.0)).as_py():
            choices = pa.concat_arrays([choices, pa.array([0.0, -0.0], wanted)])

    def kernel(column: Any) -> Any:
        found = pc.is_in(column, value_set=choices)
        return found if not column.null_count else pc.if_else(column.is_null(), pa.scalar(None, _BOOL), found)

    return _brought(kernel, types, wanted)


def _is_truth(wanted: bool) -> Callable[[Types], Kernel]:
    return _logic(lambda values: pc.fill_null(values if wanted else pc.invert(values), False))


def _then(types: Types) -> Kernel:
    condition, *branches = types
    if not pa.types.is_boolean(condition) and not pa.types.is_null(condition):
        raise TypeError("then() needs a truth value in front")
    wanted = _common(branches)
    casts = [bring(kind, wanted) for kind in branches]

    def kernel(truth: Any, if_true: Any, if_false: Any) -> Any:
        one, other = [value if cast is None else cast(value) for cast, value in zip(casts, (if_true, if_false))]
        truth = pc.fill_null(truth.cast(_BOOL), False)
        chosen = pc.if_else(truth, one, other)
        if isinstance(chosen, pa.Array):
            return chosen
        return pa.repeat(chosen, next(len(each) for each in (if_true, if_false) if isinstance(each, pa.Array)))

    return kernel


def _coalesce(types: Types) -> Kernel:
    return _brought(pc.coalesce, types, _common(types))


# -- text ------------------------------------------------------------------------------------------------------------------


def _of_text(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """A kernel of one text, made from the function's options."""
    def choose(types: Types, **options: Any) -> Kernel:
        if not is_text(types[0]) and not pa.types.is_null(types[0]):
            raise TypeError("it needs text")
        return _brought(make(**options), types, TEXT)
    return choose


def _concat(types: Types) -> Kernel:
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text; cast numbers to DataTypes.STRING()")
    return _brought(lambda *texts: pc.binary_join_element_wise(*texts, pa.scalar("")), types, TEXT)


def _concat_ws(types: Types, separator: str) -> Kernel:
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text; cast numbers to DataTypes.STRING()")
    between = pa.scalar(separator)

    def joined(left: Any, right: Any) -> Any:
        both = pc.binary_join_element_wise(left, right, between)  # null where one is; Arrow's own skipping of nulls loses rows that have only nulls
        return pc.coalesce(both, left, right)

    return _brought(lambda *texts: pc.fill_null(functools.reduce(joined, texts), ""), types, TEXT)


def _substring(begin: int, length: int | None) -> Kernel:
    end = None if length is None else min(begin - 1 + length, _FARTHEST)
    return lambda texts: pc.utf8_slice_codeunits(texts, min(begin - 1, _FARTHEST), end)


def _cased(fast: Kernel, change: Callable[[str], str]) -> Kernel:
    """Arrow's kernel for plain letters; Python for others, some of which become two."""
    by_value = _by_value(change)
    return lambda texts: fast(texts) if pc.all(pc.string_is_ascii(texts), min_count=0).as_py() else by_value(texts)


def _by_value(change: Callable[[str], str]) -> Kernel:
    return lambda texts: pa.array([None if text is None else change(text) for text in texts.to_pylist()], TEXT)


def _replace(search: str, replacement: str) -> Kernel:
    if not search:  # Arrow's kernel never ends
        return _by_value(lambda text: text.replace(search, replacement))
    return lambda texts: pc.replace_substring(texts, search, replacement)


def _like(pattern: str) -> Kernel:
    if "\\" not in pattern:
        return lambda texts: pc.match_like(texts, pattern)
    # Arrow takes a backslash for an escape; without ESCAPE, SQL has none.
    wanted = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return lambda texts: pc.match_substring_regex(texts, rf"(?s)\A{wanted}\z")


KERNELS: dict[str, Callable[..., Kernel]] = {
    "+": _plus, "-": _minus, "*": _arithmetic("*", pc.multiply_checked, pc.multiply), "/": _divide, "%": _modulo,
    "negate": _of_number(pc.negate_checked, pc.negate), "abs": _of_number(pc.abs_checked, pc.abs), "sign": _sign,
    "sqrt": _of_float(pc.sqrt), "exp": _of_float(pc.exp), "ln": _of_float(pc.ln),
    "floor": _to_whole(pc.floor), "ceil": _to_whole(pc.ceil), "round": _round,
    "==": _comparison(pc.equal), "!=": _comparison(pc.not_equal), "<": _comparison(pc.less), "<=": _comparison(pc.less_equal),
    ">": _comparison(pc.greater), ">=": _comparison(pc.greater_equal), "in_": _in,
    "is_null": lambda types: pc.is_null, "is_not_null": lambda types: pc.is_valid, "is_true": _is_truth(True), "is_false": _is_truth(False),
    "&": _logic(pc.and_kleene), "|": _logic(pc.or_kleene), "not": _logic(pc.invert), "then": _then, "coalesce": _coalesce,
    "upper": _of_text(lambda: _cased(pc.utf8_upper, str.upper)), "lower": _of_text(lambda: _cased(pc.utf8_lower, str.lower)),
    "char_length": _of_text(lambda: _length),
    "substring": _of_text(_substring), "trim": _of_text(lambda: lambda texts: pc.utf8_trim(texts, " ")),
    "trim_leading": _of_text(lambda: lambda texts: pc.utf8_ltrim(texts, " ")),
    "trim_trailing": _of_text(lambda: lambda texts: pc.utf8_rtrim(texts, " ")),
    "like": _of_text(_like),
    "startswith": _of_text(lambda pattern: lambda texts: pc.starts_with(texts, pattern)),
    "endswith": _of_text(lambda pattern: lambda texts: pc.ends_with(texts, pattern)),
    "replace": _of_text(_replace), "concat": _concat, "concat_ws": _concat_ws, "cast": cast,
}


def _length(texts: Any) -> Any:
    return pc.utf8_length(texts).cast(INT)
