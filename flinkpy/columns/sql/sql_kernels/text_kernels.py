"""Functions of texts, patterns, encodings and hashes over whole columns: Arrow's where it
means the same, else by value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.parts_of_texts import part_at
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_kernels.regex_kernels import REGEX_KERNELS
from flinkpy.columns.sql.sql_meanings.texts.encoding_meanings import ENCODING_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.format_meanings import FORMAT_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.hash_meanings import HASH_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.regex_meanings import REGEX_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.text_editing_meanings import TEXT_EDITING_MEANINGS
from flinkpy.columns.sql.sql_meanings.texts.text_search_meanings import TEXT_SEARCH_MEANINGS

_TRIMS = {"BOTH": pc.utf8_trim, "LEADING": pc.utf8_ltrim, "TRAILING": pc.utf8_rtrim}


def _concat(site: CallSite) -> Kernel:
    def kernel(rows: int, *parts: Any) -> Any:
        nothing = pa.scalar("" if pa.types.is_string(parts[0].type) else b"", parts[0].type)
        return column_of(pc.binary_join_element_wise(*parts, nothing), rows)

    return kernel


def _split_index(site: CallSite) -> Kernel:
    """In Arrow if separator and place are constants."""
    separator, index = site.constant(1), site.constant(2)
    if not isinstance(separator, str) or not separator or not isinstance(index, int) or index < 0:
        return by_value("SPLIT_INDEX")(site)

    return lambda rows, texts, *_: part_at(column_of(texts, rows), separator, index)


def _trim(name: str, side: str) -> KernelOf:
    """In Arrow if the characters are a constant."""

    def choose(site: CallSite) -> Kernel:
        characters = site.constant(1) if len(site.arguments) == 2 else " "
        if not isinstance(characters, str) or not characters:
            return by_value(name)(site)
        trim = _TRIMS[str(site.options.get("side", side))]
        return lambda rows, text, *_: column_of(trim(text, characters=characters), rows)

    return choose


def _with_constant(name: str, function: Callable[[Any, Any], Any]) -> KernelOf:
    """``function`` in Arrow if the second argument is a constant that is not empty."""

    def choose(site: CallSite) -> Kernel:
        constant = site.constant(1)
        if not isinstance(constant, (str, bytes)) or not constant:
            return by_value(name)(site)
        return lambda rows, text, _: column_of(function(text, constant), rows)

    return choose


def _left(site: CallSite) -> Kernel:
    length = site.constant(1)
    if not isinstance(length, int) or length < 0:
        return by_value("LEFT")(site)
    return lambda rows, text, _: column_of(pc.utf8_slice_codeunits(text, 0, length), rows)


def _replace(site: CallSite) -> Kernel:
    old, new = site.constant(1), site.constant(2)
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        return by_value("REPLACE")(site)
    return lambda rows, text, *_: column_of(pc.replace_substring(text, old, new), rows)


_BY_VALUE = (
    TEXT_EDITING_MEANINGS,
    TEXT_SEARCH_MEANINGS,
    ENCODING_MEANINGS,
    HASH_MEANINGS,
    REGEX_MEANINGS,
    FORMAT_MEANINGS,
)

TEXT_KERNELS: dict[str, KernelOf] = {
    **{name: by_value(name) for meanings in _BY_VALUE for name in meanings},
    **REGEX_KERNELS,
    "CONCAT": _concat,
    "SPLIT_INDEX": _split_index,
    "TRIM": _trim("TRIM", "BOTH"),
    "LTRIM": _trim("LTRIM", "LEADING"),
    "RTRIM": _trim("RTRIM", "TRAILING"),
    "BTRIM": _trim("BTRIM", "BOTH"),
    "LEFT": _left,
    "REPLACE": _replace,
    "REVERSE": lambda site: lambda rows, text: column_of(pc.utf8_reverse(text), rows),
    "STARTSWITH": _with_constant("STARTSWITH", pc.starts_with),
    "ENDSWITH": _with_constant("ENDSWITH", pc.ends_with),
}
