"""Kernels for text."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.nested import items_at
from flinkpy.columns.kernels.operand_types import INT, TEXT, Kernel, Types, is_text, with_casts
from flinkpy.columns.row_functions.text_functions import padded, split

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
    return with_casts(
        lambda *texts: pc.binary_join_element_wise(*texts, pa.scalar("")), types, TEXT
    )


def concat_ws(types: Types, separator: str) -> Kernel:
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text; cast numbers to DataTypes.STRING()")
    between = pa.scalar(separator)

    def joined(left: pa.Array | pa.Scalar, right: pa.Array | pa.Scalar) -> Any:
        # Null where one is; Arrow's way of skipping nulls loses rows of only nulls
        both = pc.binary_join_element_wise(left, right, between)
        return pc.coalesce(both, left, right)

    return with_casts(lambda *texts: pc.fill_null(functools.reduce(joined, texts), ""), types, TEXT)


def substring(begin: int, length: int | None) -> Kernel:
    end = None if length is None else min(begin - 1 + length, _FARTHEST)
    return lambda texts: pc.utf8_slice_codeunits(texts, min(begin - 1, _FARTHEST), end)


def change_case(fast: Kernel, change: Callable[[str], str]) -> Kernel:
    """Uses Arrow's kernel for ASCII text, and Python for other text, where one letter may become
    two."""
    by_value = _by_value(change)
    return lambda texts: (
        fast(texts) if pc.all(pc.string_is_ascii(texts), min_count=0).as_py() else by_value(texts)
    )


def _by_value(change: Callable[[str], str]) -> Kernel:
    return lambda texts: pa.array(
        [None if text is None else change(text) for text in texts.to_pylist()], TEXT
    )


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


def length(texts: pa.Array) -> Any:
    return pc.utf8_length(texts).cast(INT)


def trimmed(kernel: Kernel) -> Callable[..., Kernel]:
    def of_characters(characters: str) -> Kernel:
        return lambda texts: kernel(texts, characters)

    return of_characters


def right(length: int) -> Kernel:
    return (
        (lambda texts: pc.utf8_slice_codeunits(texts, -min(length, _FARTHEST)))
        if length
        else (lambda texts: pc.utf8_slice_codeunits(texts, 0, 0))
    )


def contains(pattern: str) -> Kernel:
    return lambda texts: pc.match_substring(texts, pattern)


def position(types: Types) -> Kernel:
    """The position of one text in another, from 1; 0 if it is not there. Arrow searches for one
    constant at a time, and counts bytes."""
    if not all(is_text(kind) or pa.types.is_null(kind) for kind in types):
        raise TypeError("it needs text")

    def found(needles: pa.Array | pa.Scalar, texts: pa.Array) -> Any:
        length = len(texts) if isinstance(needles, pa.Scalar) else len(needles)
        pairs = zip(
            *(
                [each.as_py()] * length if isinstance(each, pa.Scalar) else each.to_pylist()
                for each in (needles, texts)
            )
        )
        return pa.array(
            [
                None if needle is None or text is None else text.find(needle) + 1
                for needle, text in pairs
            ],
            INT,
        )

    return with_casts(found, types, TEXT)


def pad(on_the_left: bool) -> Callable[..., Kernel]:
    fast = pc.utf8_lpad if on_the_left else pc.utf8_rpad

    def choose(length: int, pad: str) -> Kernel:
        if len(pad) == 1:
            return lambda texts: pc.utf8_slice_codeunits(fast(texts, length, pad), 0, length)
        return _by_value(lambda text: padded(text, length, pad, on_the_left))

    return choose


def repeat(times: int) -> Kernel:
    return lambda texts: pc.binary_repeat(texts, times)


def split_at(delimiter: str) -> Kernel:
    if delimiter:
        return lambda texts: pc.split_pattern(texts, delimiter)
    return lambda texts: pa.array(
        [None if text is None else split(text, "") for text in texts.to_pylist()], pa.list_(TEXT)
    )


def split_index(delimiter: str, index: int) -> Kernel:
    parts_of = split_at(delimiter)
    return lambda texts: items_at(parts_of(texts), index + 1)


def by_value(change: Callable[[str], str]) -> Callable[[], Kernel]:
    return lambda: _by_value(change)


def regular(over_texts: Callable[..., Any]) -> Callable[..., Kernel]:
    """A kernel of one text operand for a function of regular expressions. Raises an error of Arrow
    for a pattern that is none."""

    def choose(**options: Any) -> Kernel:
        over_texts(pa.array([""]), **options)
        return lambda texts: over_texts(texts, **options)

    return of_text(choose)
