"""Regular expressions over whole columns: constant patterns that mean the same in Arrow's engine,
RE2, as in Java. Any other pattern is computed value by value."""

from __future__ import annotations

import re
from typing import Any

import pyarrow.compute as pc

from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of

_WHOLE = "g0"  # the group of the whole match; the others are g1 and so on
_DOT = r"[^\n\r\x{85}\x{2028}\x{2029}]"
_ITEM = r"[a-zA-Z0-9]-[a-zA-Z0-9]|[a-zA-Z0-9_/=:;,%@!~<>\"' ]|&(?!&)|\\[dw]|\\[^a-zA-Z0-9\s]"
# What both engines know in the same meaning; a quantifier stands behind one character only
_PIECE = re.compile(
    rf"""(?P<atom>
        (?P<plain>[^\\\[\](){{}}^$.|*+?]) | \\(?P<sign>[!-/:-@\[-`{{-~]) | (?P<known>\\[dDwW])
        | (?P<dot>\.) | (?P<brackets>\[\^?(?:{_ITEM})+\])
      )(?P<times>[*+?]\??(?![*+?{{]))?
    | (?P<start>\^(?![*+?{{])) | (?P<open>\((?!\?)) | (?P<close>\)(?![*+?{{])) | (?P<choice>\|)
    """,
    re.VERBOSE,
)


def arrow_pattern(pattern: str) -> tuple[str, int] | None:
    """The pattern for Arrow, whose groups are named g0 (all of it), g1 and so on, and how many it
    has; None if Arrow might find something else. Groups do not stand in each other, and always
    take part in a match."""
    parts, at = [], 0
    groups, is_open, has_choice = 0, False, False
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if piece is None or (piece["open"] and is_open) or (piece["close"] and not is_open):
            return None
        if piece["open"]:
            groups, is_open = groups + 1, True
            parts.append(f"(?P<g{groups}>")
        elif piece["close"]:
            is_open = False
            parts.append(")")
        elif piece["choice"]:
            has_choice = has_choice or not is_open
            parts.append("|")
        else:
            parts.append(_said(piece))
        at = piece.end()
    if not parts or is_open or (has_choice and groups):
        return None
    return f"(?P<{_WHOLE}>{''.join(parts)})", groups


def _said(piece: re.Match[str]) -> str:
    if piece["start"]:
        return r"\A"
    times = piece["times"] or ""
    if piece["dot"]:
        return _DOT + times
    if piece["plain"]:
        return (piece["plain"] if ord(piece["plain"]) > 127 else re.escape(piece["plain"])) + times
    return str(piece["atom"]) + times


def _extract(name: str) -> KernelOf:
    def choose(site: CallSite) -> Kernel:
        pattern = site.constant(1)
        group = site.constant(2) if len(site.arguments) > 2 else 0
        found = arrow_pattern(pattern) if isinstance(pattern, str) else None
        if found is None or not isinstance(group, int) or not 0 <= group <= found[1]:
            return by_value(name)(site)
        regex = found[0]

        def kernel(rows: int, texts: Any, *_: Any) -> Any:
            matches = pc.extract_regex(column_of(texts, rows), regex)
            return pc.struct_field(matches, [group])

        return kernel

    return choose


def _regexp(site: CallSite) -> Kernel:
    pattern = site.constant(1)
    found = arrow_pattern(pattern) if isinstance(pattern, str) else None
    if found is None:
        return by_value("REGEXP")(site)
    return lambda rows, texts, _: pc.match_substring_regex(column_of(texts, rows), found[0])


REGEX_KERNELS: dict[str, KernelOf] = {
    "REGEXP": _regexp,
    "REGEXP_EXTRACT": _extract("REGEXP_EXTRACT"),
    "REGEXP_SUBSTR": _extract("REGEXP_SUBSTR"),
}
