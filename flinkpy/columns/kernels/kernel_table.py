"""The table of kernels: how each function of expressions is computed for whole columns.

A kernel is chosen by the operands' types: ``KERNELS[name](types, **options)`` returns the function
over arrays (and scalars, for constant operands), or raises TypeError. ``flinkpy.columns.rowwise``
defines what a function means for one row, and a property test compares the kernels with it."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

from flinkpy.columns import regular_expressions
from flinkpy.columns.kernels import moments, nested, text
from flinkpy.columns.kernels.arithmetic import (
    arithmetic,
    divide,
    floor_divide,
    minus,
    modulo,
    of_float,
    of_number,
    plus,
    power,
    round_to,
    sign,
    to_whole,
)
from flinkpy.columns.kernels.casts import cast, cast_where_possible
from flinkpy.columns.kernels.logic import best, coalesce, comparison, is_in, is_truth, logic, then
from flinkpy.columns.kernels.operand_types import Kernel
from flinkpy.columns.kernels.text import (
    change_case,
    concat,
    concat_ws,
    length,
    like,
    of_text,
    regular,
    replace,
    substring,
)
from flinkpy.columns.kernels.zones import convert_time_zone, replace_time_zone
from flinkpy.columns.row_functions.text_functions import init_cap

KERNELS: dict[str, Callable[..., Kernel]] = {
    "+": plus,
    "-": minus,
    "*": arithmetic("*", pc.multiply_checked, pc.multiply),
    "/": divide,
    "%": modulo,
    "**": power,
    "negate": of_number(pc.negate_checked, pc.negate),
    "abs": of_number(pc.abs_checked, pc.abs),
    "sign": sign,
    "sqrt": of_float(pc.sqrt),
    "exp": of_float(pc.exp),
    "ln": of_float(pc.ln),
    "floor": to_whole(pc.floor),
    "ceil": to_whole(pc.ceil),
    "round": round_to,
    "==": comparison(pc.equal),
    "!=": comparison(pc.not_equal),
    "<": comparison(pc.less),
    "<=": comparison(pc.less_equal),
    ">": comparison(pc.greater),
    ">=": comparison(pc.greater_equal),
    "in_": is_in,
    "is_null": lambda types: pc.is_null,
    "is_not_null": lambda types: pc.is_valid,
    "is_nan": of_float(pc.is_nan),
    "is_true": is_truth(True),
    "is_false": is_truth(False),
    "&": logic(pc.and_kleene),
    "|": logic(pc.or_kleene),
    "not": logic(pc.invert),
    "then": then,
    "coalesce": coalesce,
    "upper": of_text(lambda: change_case(pc.utf8_upper, str.upper)),
    "lower": of_text(lambda: change_case(pc.utf8_lower, str.lower)),
    "char_length": of_text(lambda: length),
    "substring": of_text(substring),
    "trim": of_text(text.trimmed(pc.utf8_trim)),
    "trim_leading": of_text(text.trimmed(pc.utf8_ltrim)),
    "trim_trailing": of_text(text.trimmed(pc.utf8_rtrim)),
    "like": of_text(like),
    "startswith": of_text(lambda pattern: lambda texts: pc.starts_with(texts, pattern)),
    "endswith": of_text(lambda pattern: lambda texts: pc.ends_with(texts, pattern)),
    "replace": of_text(replace),
    "concat": concat,
    "concat_ws": concat_ws,
    "cast": cast,
    "try_cast": cast_where_possible,
    "//": floor_divide,
    "greatest": best(pc.greater, nan_wins=True),
    "least": best(pc.less, nan_wins=False),
    "right": of_text(text.right),
    "contains": of_text(text.contains),
    "position": text.position,
    "lpad": of_text(text.pad(on_the_left=True)),
    "rpad": of_text(text.pad(on_the_left=False)),
    "repeat": of_text(text.repeat),
    "reverse": of_text(lambda: pc.utf8_reverse),
    "init_cap": of_text(text.by_value(init_cap)),
    "split": of_text(text.split_at),
    "split_index": of_text(text.split_index),
    "regexp": regular(regular_expressions.matches),
    "regexp_count": regular(regular_expressions.count),
    "regexp_extract": regular(regular_expressions.extracted),
    "regexp_replace": regular(regular_expressions.replaced),
    "extract": moments.extract,
    "floor_to": moments.floor_to,
    "ceil_to": moments.ceil_to,
    "interval": moments.interval,
    "months": moments.months_alone,
    "add_months": moments.add_months,
    "timestamp_diff": moments.timestamp_diff,
    "read_moment": moments.read_moment,
    "date_format": moments.date_format,
    "convert_time_zone": convert_time_zone,
    "replace_time_zone": replace_time_zone,
    "get": nested.get,
    "at": nested.at,
    "cardinality": nested.cardinality,
    "array_contains": nested.array_contains,
}
