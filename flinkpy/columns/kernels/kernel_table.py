"""The table of kernels: how each function of expressions is computed for whole columns.

A kernel is chosen by the operands' types: ``KERNELS[name](types, **options)`` returns the function over arrays (and
scalars, for constant operands), or raises TypeError. ``flinkpy.columns.rowwise`` defines what a function means for
one row, and a property test compares the kernels with it.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.compute as pc

from flinkpy.columns.kernels.arithmetic import arithmetic, divide, minus, modulo, of_float, of_number, plus, round_to, sign, to_whole
from flinkpy.columns.kernels.casts import cast
from flinkpy.columns.kernels.logic import coalesce, comparison, is_in, is_truth, logic, then
from flinkpy.columns.kernels.operand_types import Kernel
from flinkpy.columns.kernels.text import change_case, concat, concat_ws, length, like, of_text, replace, substring

KERNELS: dict[str, Callable[..., Kernel]] = {
    "+": plus, "-": minus, "*": arithmetic("*", pc.multiply_checked, pc.multiply), "/": divide, "%": modulo,
    "negate": of_number(pc.negate_checked, pc.negate), "abs": of_number(pc.abs_checked, pc.abs), "sign": sign,
    "sqrt": of_float(pc.sqrt), "exp": of_float(pc.exp), "ln": of_float(pc.ln),
    "floor": to_whole(pc.floor), "ceil": to_whole(pc.ceil), "round": round_to,
    "==": comparison(pc.equal), "!=": comparison(pc.not_equal), "<": comparison(pc.less), "<=": comparison(pc.less_equal),
    ">": comparison(pc.greater), ">=": comparison(pc.greater_equal), "in_": is_in,
    "is_null": lambda types: pc.is_null, "is_not_null": lambda types: pc.is_valid, "is_true": is_truth(True), "is_false": is_truth(False),
    "&": logic(pc.and_kleene), "|": logic(pc.or_kleene), "not": logic(pc.invert), "then": then, "coalesce": coalesce,
    "upper": of_text(lambda: change_case(pc.utf8_upper, str.upper)), "lower": of_text(lambda: change_case(pc.utf8_lower, str.lower)),
    "char_length": of_text(lambda: length),
    "substring": of_text(substring), "trim": of_text(lambda: lambda texts: pc.utf8_trim(texts, " ")),
    "trim_leading": of_text(lambda: lambda texts: pc.utf8_ltrim(texts, " ")),
    "trim_trailing": of_text(lambda: lambda texts: pc.utf8_rtrim(texts, " ")),
    "like": of_text(like),
    "startswith": of_text(lambda pattern: lambda texts: pc.starts_with(texts, pattern)),
    "endswith": of_text(lambda pattern: lambda texts: pc.ends_with(texts, pattern)),
    "replace": of_text(replace), "concat": concat, "concat_ws": concat_ws, "cast": cast,
}
