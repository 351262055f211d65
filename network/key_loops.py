"""The loops that put records into the boxes of their keys' channels, with the key selector written out where it can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.generated import compile_function
from flinkpy.core.inlining import call_or_inline, inlined

_PLAIN = """\
def fill(values, appends, select):
    for record in values:
        appends[{key}](record)
"""
_STAMPED = """\
def fill(values, stamps, channels, appends, stamp_appends, select):
    for record, stamp in zip(values, stamps):
        channel = channels[{key}]
        appends[channel](record)
        stamp_appends[channel](stamp)
"""


class KeyLoops:
    """Both loops for one selector. ``plain(values, appends)``: ``appends`` leads from a key to the append of its box;
    ``stamped(values, stamps, channels, appends, stamp_appends)``: ``channels`` leads from a key to its channel."""

    def __init__(self, select: Callable[[Any], Any]) -> None:
        self._select = select
        self._written_out = inlined(select, "record") is not None
        key = call_or_inline(select, "select", "record")
        self._plain = compile_function("fill", _PLAIN.format(key=key), {})
        self._stamped = compile_function("fill", _STAMPED.format(key=key), {})

    def plain(self, values: list[Any], appends: Any) -> None:
        try:
            self._plain(values, appends, self._select)
        except Exception:
            self._raise_again(values)
            raise

    def stamped(self, values: list[Any], stamps: list[int], channels: Any, appends: Any, stamp_appends: Any) -> None:
        try:
            self._stamped(values, stamps, channels, appends, stamp_appends, self._select)
        except Exception:
            self._raise_again(values)
            raise

    def _raise_again(self, values: list[Any]) -> None:
        """Calls a selector that was written out, so that what it raises has its frame."""
        for value in values if self._written_out else ():
            self._select(value)
