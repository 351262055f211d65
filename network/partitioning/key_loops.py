"""The loops that distribute records to boxes, one per channel, by key. The key selector is inlined
if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.codegen.inlining import call_or_inline
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import stable_hash

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
    """Both loops for one selector. In ``plain(values, appends)``, ``appends`` maps a key to the
    append of its box. In ``stamped(values, stamps, channels, appends, stamp_appends)``,
    ``channels`` maps a key to its channel."""

    def __init__(self, select: Callable[[Any], Any]) -> None:
        self._select = select
        key = call_or_inline(select, "select", "record")
        self._plain = compile_function("fill", _PLAIN.format(key=key), {})
        self._stamped = compile_function("fill", _STAMPED.format(key=key), {})

    def plain(self, values: list[Any], appends: Any) -> None:
        try:
            self._plain(values, appends, self._select)
        except Exception:
            self._raise_again(values)
            raise

    def stamped(
        self, values: list[Any], stamps: list[int], channels: Any, appends: Any, stamp_appends: Any
    ) -> None:
        try:
            self._stamped(values, stamps, channels, appends, stamp_appends, self._select)
        except Exception:
            self._raise_again(values)
            raise

    def _raise_again(self, values: list[Any]) -> None:
        """Finds the record whose key failed, and raises the error again so that it names the record
        and has the selector's frame, even if the selector was inlined."""
        for value in values:
            try:
                hash(key := self._select(value))
                stable_hash(key)
            except ProgramError as error:
                raise ProgramError(f"{error} (the key of {value!r:.200})") from None
            except Exception as error:
                # for ``user_code_error``
                error.record_at_fault = value  # type: ignore[attr-defined]
                raise
