"""Work that an operator has begun and not ended yet: it is parked, and the task goes on with it step by step.

A function may yield without end, or slowly. So what calls functions is a generator: it emits what was given so far and yields. Then the operator is
parked: whatever comes for it meanwhile (batches, control elements, timers) waits behind that work, in order, and the current key stays what it is.
While one operator of a chain is parked, its task reads no input; it serves its mail, and goes on with the work as its consumers have room.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import FlinkpyError
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.chain.outputs import OperatorCounters, OperatorInput
from flinkpy.operators.user_errors import user_code_error


class ParkingInput(OperatorInput):
    """The way into an operator that may park. ``behind`` are those its output leads to: it does not go on while one of them is parked."""

    __slots__ = ("_behind", "_waiting", "_work", "on_parked")

    def __init__(
        self, operator: StreamOperator, process: Callable[[Batch], Work | None], counters: OperatorCounters, behind: Sequence[ParkingInput],
    ) -> None:
        super().__init__(operator, process, counters)
        self._behind = tuple(behind)
        self._waiting: deque[tuple[Callable[..., Work | None], tuple[Any, ...]]] = deque()
        self._work: Work | None = None
        self.on_parked: Callable[[], None] = _nobody  # who is told: it may have happened in mail, while the task waited for input
        operator.do = self.do

    @property
    def parked(self) -> bool:
        """Whether there is work left, or something waits for its turn."""
        return self._work is not None or bool(self._waiting)

    def push(self, batch: Batch) -> None:
        self._push(self.process, batch)

    def push_of(self, process: Callable[[Batch], Work | None]) -> Callable[[Batch], None]:
        return partial(self._push, process)

    def _push(self, process: Callable[[Batch], Work | None], batch: Batch) -> None:
        self.counters.records_in += len(batch.values) if type(batch) is RowBatch else len(batch)
        self.call(process, batch)

    def call(self, function: Callable[..., Work | None], *arguments: Any) -> None:
        """Calls a method of the operator: now, or when its turn comes."""
        if self.parked:
            self._waiting.append((function, arguments))
            self.on_parked()
        else:
            self._begin(function, arguments)

    def do(self, work: Work) -> None:
        """What the operator does by itself, at a timer: when its turn comes."""
        self.call(_same, work)

    def step(self) -> None:
        """Goes on, if it may: a bounded part of the work, or the next that waits."""
        for each in self._behind:
            if each.parked:
                return
        if self._work is not None:
            self._begin(_same, (self._work,))
        elif self._waiting:
            self._begin(*self._waiting.popleft())

    def _begin(self, function: Callable[..., Work | None], arguments: tuple[Any, ...]) -> None:
        try:
            work = function(*arguments)
            if work is not None:
                for _ in work:
                    self._work = work
                    self.on_parked()
                    return
            self._work = None
        except FlinkpyError:
            raise
        except Exception as error:
            raise user_code_error(error, self.operator.context) from error

    def close(self) -> None:
        """Nothing more is done; generators of the user's end as they stand."""
        work, self._work = self._work, None
        self._waiting.clear()
        if work is not None:
            work.close()

    def __repr__(self) -> str:
        return f"<ParkingInput of {self.operator!r}: {'parked' if self.parked else 'free'}, {len(self._waiting)} waiting>"


def _same(work: Work) -> Work:
    return work


def _nobody() -> None:
    pass
