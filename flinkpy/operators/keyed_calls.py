"""The one loop of keyed process functions: for each record the key is set and the function called.

Generated with the key selector in its middle, as a call of most selectors costs more than what they do (``flinkpy.core.inlining``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.elements import RowBatch
from flinkpy.core.generated import compile_function, failure_in, forget_source
from flinkpy.core.inlining import call_or_inline, raised_by
from flinkpy.core.keys import PLAIN_KEYS, canonical_key
from flinkpy.operators.base import OperatorContext
from flinkpy.operators.errors import user_code_error
from flinkpy.state.backend import CurrentKey

_LOOP = """\
def keyed_calls(values, stamps, select, process, context, current, take, stamp_new, clock):
    if stamps is None:
        context._timestamp = None
        for value in values:
            {key}
            given = process(value, context)
            if given is not None:
                take(given)
    else:
        for value, context._timestamp in zip(values, stamps):
            {key}
            given = process(value, context)
            if given is not None:
                take(given)
                stamp_new(context._timestamp)
"""
_KEY = "key = {selected}; current.key = key if type(key) in plain_keys else canonical_key(key)"
_HASHED = "; hash(key)"
_TIME = "; current.now_ns = clock()"
_KEY_LINES = [number for number, line in enumerate(_LOOP.splitlines(), 1) if "{key}" in line]


class KeyedCalls:
    """The loop for one input and its key selector. ``hashes``: a key that cannot be hashed is found here, as no state is looked up for it.
    ``expires``: the clock is read for each record, once for all state it touches."""

    def __init__(self, select: Callable[[Any], Any], context: OperatorContext, current: CurrentKey, *, hashes: bool, expires: bool) -> None:
        self._select, self._context, self._current = select, context, current
        key = _KEY.format(selected=call_or_inline(select, "select", "value")) + (_HASHED if hashes else "") + (_TIME if expires else "")
        self._loop = compile_function("keyed_calls", _LOOP.format(key=key), {"plain_keys": PLAIN_KEYS, "canonical_key": canonical_key})

    def run(
        self, batch: RowBatch, process: Callable[[Any, Any], Any], context: Any, take: Callable[[Any], None], stamp_new: Callable[[int], None],
    ) -> None:
        """Calls ``process(value, context)`` for each record and gives ``take`` what it returned, if anything; then ``stamp_new`` the time of the
        record, if it has one."""
        try:
            self._loop(batch.values, batch.timestamps, self._select, process, context, self._current, take, stamp_new, self._context.clock.time_ns)
        except Exception as error:
            failure = failure_in(self._loop, error.__traceback__)
            record = failure.variables.get("value") if failure else None
            explained = raised_by(self._select, [record], error) if failure and failure.line in _KEY_LINES else error
            raise user_code_error(explained, self._context, record) from error
        finally:
            self._current.now_ns = None

    def close(self) -> None:
        """The loop will not be run again."""
        forget_source(self._loop)
