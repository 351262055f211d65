"""A generated loop over the records of a batch, and the general way for the records it hands back.

A function called on the general way may yield without end, and then the operator parks (``flinkpy.operators.process.parking``). So the loop has to
end at that record: the records behind it are set aside, and the loop begins again with them when the function is through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.operators.base import Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.user_errors import user_code_error

# What the loop calls for a record it cannot prove simple: (key, record, timestamp).
HandBack: TypeAlias = "Callable[[Any, Any, int], None]"
# Runs the loop: (records, timestamps, the watermark or clock, hand_back).
RunLoop: TypeAlias = "Callable[[Iterator[Any], Iterator[int], int, HandBack], None]"


class FastPath:
    """``loop``: the generated function, which ``run_loop`` calls. ``general``: the work for one record."""

    def __init__(
        self, loop: Callable[..., None], run_loop: RunLoop, general: Callable[[Any, Any, int], Work], context: OperatorContext,
    ) -> None:
        self._loop, self._run_loop, self._general, self._context = loop, run_loop, general, context
        self._records: Iterator[Any] = iter(())
        self._timestamps: Iterator[int] = iter(())
        self._rest: tuple[list[Any], list[int]] = [], []  # the records behind the one that parked the operator
        self._unfinished: Work | None = None

    def run(self, records: Iterable[Any], timestamps: Iterable[int], time: int) -> Work:
        """All records of a batch."""
        self._records, self._timestamps = iter(records), iter(timestamps)
        while (unfinished := self._run_part(time)) is not None:
            yield
            yield from unfinished
            self._records, self._timestamps = map(iter, self._rest)

    def _run_part(self, time: int) -> Work | None:
        """Up to the end, or up to a record that parks the operator: then what is left to do for it."""
        self._unfinished = None
        try:
            self._run_loop(self._records, self._timestamps, time, self._hand_back)
        except Exception as error:
            failure = failure_in(self._loop, error.__traceback__)
            raise user_code_error(error, self._context, failure.variables.get("record") if failure else None) from error
        return self._unfinished

    def _hand_back(self, key: Any, record: Any, timestamp: int) -> None:
        work = self._general(key, record, timestamp)
        for _ in work:
            self._unfinished = work
            rest = list(zip(self._records, self._timestamps))  # the loop finds no more records, and ends
            self._rest = [record for record, _ in rest], [timestamp for _, timestamp in rest]
            return

    def close(self) -> None:
        """Forgets the source of the generated loop."""
        forget_source(self._loop)
