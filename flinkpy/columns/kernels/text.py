"""Kernels for text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import INT, TEXT, Kernel, Types, is_text, with_casts

_FARTHEST = (1 << 62) - 1  # beyond the last character of any text


def of_text(make: Callable[..., Kernel]) -> Callable[..., Kernel]:
    """A kernel of one text operand, made from the function's options."""
    def choose(types: Types, **options: Any) -> Kernel:
        if not is_text(types[0]) and not pa.types.is_null(types[0]):
            raise TypeError("it needs text")
        return with_casts(make(**options), types, TEXT)
    return choose


def concat(types: Types) -> Kernel:
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text; cast numbers to DataTypes.STRING()")
    return with_casts(lambda *texts: pc.binary_join_element_wise(*texts, pa.scalar("")), types, TEXT)


def concat_ws(types: Types, separator: str) -> Kernel:
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text; cast numbers to DataTypes.STRING()")
    between = pa.scalar(separator)

    def joined(left: Any, right: Any) -> Any:
        # Null where one is; Arrow's way of skipping nulls loses rows of only nulls
        both = pc.binary_join_element_wise(left, right, between)
        return pc.coalesce(both, left, right)

    return with_casts(lambda *texts: pc.fill_null(functools.reduce(joined, texts), ""), types, TEXT)


def substring(begin: int, length: int | None) -> Kernel:
    end = None if length is None else min(begin - 1 + length, _FARTHEST)
    return lambda texts: pc.utf8_slice_codeunits(texts, min(begin - 1, _FARTHEST), end)


def change_case(fast: Kernel, change: Callable[[str], str]) -> Kernel:
    """Uses Arrow's kernel for ASCII text, and Python for other text, where one letter may become two."""
    by_value = _by_value(change)
    return lambda texts: fast(texts) if pc.all(pc.string_is_ascii(texts), min_count=0).as_py() else by_value(texts)


def _by_value(change: Callable[[str], str]) -> Kernel:
    return lambda texts: pa.array([None if text is None else change(text) for text in texts.to_pylist()], TEXT)


def replace(search: str, replacement: str) -> Kernel:
    if not search:  # Arrow's kernel would never return
        return _by_value(lambda text: text.replace(search, replacement))
    return lambda texts: pc.replace_substring(texts, search, replacement)


def like(pattern: str) -> Kernel:
    if "\\" not in pattern:
        return lambda texts: pc.match_like(texts, pattern)
    # Arrow reads a backslash as an escape; SQL has no escape character unless ESCAPE names one.
    wanted = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return lambda texts: pc.match_substring_regex(texts, rf"(?s)\A{wanted}\z")


def length(texts: Any) -> Any:
    return pc.utf8_length(texts).cast(INT)
