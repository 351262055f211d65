"""Runs a generated loop over the records of a batch, and the general way for records that the loop
hands back.

A function called on the general way may yield without end, and then the operator parks
(``flinkpy.operators.chain.parking``). So the loop has to end at that record: the records after it
are set aside, and the loop starts again with them when the function has finished."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from flinkpy.core.codegen.generated import failure_in, forget_source
from flinkpy.operators.base import Work
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.user_errors import user_code_error

# Called by the loop for a record that it cannot handle itself: (key, record, timestamp).
HandBack: TypeAlias = "Callable[[Any, Any, int], None]"
# Runs the loop: (records, timestamps, the watermark or clock, hand_back).
RunLoop: TypeAlias = "Callable[[Iterator[Any], Iterator[int], int, HandBack], None]"


class FastPath:
    """``loop`` is the generated function, which ``run_loop`` calls; ``general`` does the work for
    one record."""

    def __init__(
        self,
        loop: Callable[..., None],
        run_loop: RunLoop,
        general: Callable[[Any, Any, int], Work],
        context: OperatorContext,
    ) -> None:
        self._loop = loop
        self._run_loop = run_loop
        self._general = general
        self._context = context
        self._records: Iterator[Any] = iter(())
        self._timestamps: Iterator[int] = iter(())
        # the records after the one that parked the operator
        self._rest: tuple[list[Any], list[int]] = [], []
        self._unfinished: Work | None = None

    def run(self, records: Iterable[Any], timestamps: Iterable[int], time: int) -> Work:
        """Processes all records of a batch."""
        self._records, self._timestamps = iter(records), iter(timestamps)
        while (unfinished := self._run_part(time)) is not None:
            yield
            yield from unfinished
            self._records, self._timestamps = map(iter, self._rest)

    def _run_part(self, time: int) -> Work | None:
        """Processes records up to the end, or up to one that parks the operator; then returns the
        work that is left for that record."""
        self._unfinished = None
        try:
            self._run_loop(self._records, self._timestamps, time, self._hand_back)
        except BaseException as error:
            failure = failure_in(self._loop, error.__traceback__)
            raise user_code_error(
                error, self._context, failure.variables.get("record") if failure else None
            ) from error
        return self._unfinished

    def _hand_back(self, key: object, record: object, timestamp: int) -> None:
        work = self._general(key, record, timestamp)
        for _ in work:
            self._unfinished = work
            # so the loop finds no more records, and ends
            rest = list(zip(self._records, self._timestamps))
            self._rest = [record for record, _ in rest], [timestamp for _, timestamp in rest]
            return

    def close(self) -> None:
        """Removes the loop's source from linecache."""
        forget_source(self._loop)
