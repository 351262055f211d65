"""The loops that distribute records to boxes, one per channel, by key. The key selector is inlined
if possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.codegen.generated import compile_function, failure_in
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
        except BaseException as error:
            self._name_record(error, self._plain)
            raise

    def stamped(
        self, values: list[Any], stamps: list[int], channels: Any, appends: Any, stamp_appends: Any
    ) -> None:
        try:
            self._stamped(values, stamps, channels, appends, stamp_appends, self._select)
        except Exception:
            self._raise_again(values)
            raise
        except BaseException as error:
            self._name_record(error, self._stamped)
            raise

    @staticmethod
    def _name_record(error: BaseException, loop: Callable[..., None]) -> None:
        """Names the record at which the selector raised what is no Exception, as SystemExit; it is
        not called again."""
        failure = failure_in(loop, error.__traceback__)
        if failure is not None:
            error.record_at_fault = failure.variables.get("record")  # type: ignore[attr-defined]

    def _raise_again(self, values: list[Any]) -> None:
        """Finds the record whose key failed, and raises the error again so that it names the record
        and has the selector's frame, even if the selector was inlined."""
        for value in values:
            try:
                hash(key := self._select(value))
                stable_hash(key)
            except Exception as failed:
                # what is no key is the function's fault
                error = TypeError(str(failed)) if isinstance(failed, ProgramError) else failed
                # for ``user_code_error``
                error.record_at_fault = value  # type: ignore[attr-defined]
                error.function_at_fault = self._select  # type: ignore[attr-defined]
                raise error from None
