"""Functions of text without patterns or formats, over whole columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.text import change_case
from flinkpy.columns.sql.call_site import VARYING, CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of


def _of_text(function: Callable[[Any], Any]) -> KernelOf:
    return lambda site: lambda rows, text: function(column_of(text, rows))


def _joined(site: CallSite) -> Kernel:
    def kernel(rows: int, left: Any, right: Any) -> Any:
        nothing = pa.scalar("" if pa.types.is_string(left.type) else b"", left.type)
        return column_of(pc.binary_join_element_wise(left, right, nothing), rows)

    return kernel


def _substring(name: str) -> KernelOf:
    """Cut in Arrow if the places are constants and count from the beginning."""

    def choose(site: CallSite) -> Kernel:
        start = site.constant(1)
        length = site.constant(2) if len(site.arguments) == 3 else None
        is_open = len(site.arguments) == 2
        if not isinstance(start, int) or start < 0 or length is VARYING:
            return by_value(name)(site)
        if not is_open and (not isinstance(length, int) or length < 0):
            return by_value(name)(site)
        begin = max(start - 1, 0)
        end = begin + length if isinstance(length, int) else None

        def kernel(rows: int, text: Any, *_: Any) -> Any:
            return column_of(pc.utf8_slice_codeunits(text, begin, end), rows)

        return kernel

    return choose


PLAIN_TEXT_KERNELS: dict[str, KernelOf] = {
    "||": _joined,
    "SUBSTRING": _substring("SUBSTRING"),
    "SUBSTR": _substring("SUBSTR"),
    "UPPER": _of_text(change_case(pc.utf8_upper, str.upper)),
    "LOWER": _of_text(change_case(pc.utf8_lower, str.lower)),
    "CHAR_LENGTH": _of_text(pc.utf8_length),
    **{name: by_value(name) for name in ("IS_ALPHA", "IS_DIGIT", "IS_DECIMAL")},
}
