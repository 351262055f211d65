"""Work that an operator has begun and not ended yet: it is parked, and the task goes on with it step by step.

A user's function may yield results slowly, or without end. So the code that calls it is a generator, which emits the results so far and yields.
Then the operator is parked: whatever arrives for it meanwhile (batches, control elements, timers) waits behind that work, in order, and the current
key stays what it is. While an operator of a chain is parked, its task reads no input; it serves its mail, and does the work as consumers have room.
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
    """The way into an operator that may park. ``behind``: the inputs its output leads to; it does not go on while one of them is parked."""

    __slots__ = ("_behind", "_waiting", "_work", "on_parked")

    def __init__(
        self, operator: StreamOperator, process: Callable[[Batch], Work | None], counters: OperatorCounters, behind: Sequence[ParkingInput],
    ) -> None:
        super().__init__(operator, process, counters)
        self._behind = tuple(behind)
        self._waiting: deque[tuple[Callable[..., Work | None], tuple[Any, ...]]] = deque()
        self._work: Work | None = None
        self.on_parked: Callable[[], None] = _do_nothing  # called also when mail parks the operator, while the task waits for input
        operator.do = self.do

    @property
    def parked(self) -> bool:
        """Whether work is left, or something waits behind it."""
        return self._work is not None or bool(self._waiting)

    def push(self, batch: Batch) -> None:
        self._push(self.process, batch)

    def push_of(self, process: Callable[[Batch], Work | None]) -> Callable[[Batch], None]:
        return partial(self._push, process)

    def _push(self, process: Callable[[Batch], Work | None], batch: Batch) -> None:
        self.counters.records_in += len(batch.values) if type(batch) is RowBatch else len(batch)
        self.call(process, batch)

    def call(self, function: Callable[..., Work | None], *arguments: Any) -> None:
        """Calls a method of the operator: now, or behind the work that is parked."""
        if self.parked:
            self._waiting.append((function, arguments))
            self.on_parked()
        else:
            self._begin(function, arguments)

    def do(self, work: Work) -> None:
        """Does work that the operator begins itself, at a timer: now, or behind the work that is parked."""
        self.call(_identity, work)

    def step(self) -> None:
        """Does a bounded part of the work, or begins what waits next, unless an operator behind is parked."""
        for each in self._behind:
            if each.parked:
                return
        if self._work is not None:
            self._begin(_identity, (self._work,))
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
        """Drops the work; generators of the user's end where they stand."""
        work, self._work = self._work, None
        self._waiting.clear()
        if work is not None:
            work.close()

    def __repr__(self) -> str:
        return f"<ParkingInput of {self.operator!r}: {'parked' if self.parked else 'free'}, {len(self._waiting)} waiting>"


class ParkedWork:
    """All parked work of a chain, and the barriers that wait behind it. ``inputs``: those that may park, tail to head."""

    def __init__(self, inputs: Sequence[ParkingInput]) -> None:
        self._inputs = tuple(inputs)
        self._barriers: deque[Work] = deque()  # on their way through the chain

    def set_listener(self, on_parked: Callable[[], None]) -> None:
        """Sets whom to call when an operator parks: ``go_on`` is to be called soon."""
        for way_in in self._inputs:
            way_in.on_parked = on_parked

    def pending(self) -> bool:
        """Whether there is any. Then no input may come before ``go_on`` has done it."""
        for way_in in self._inputs:  # asked for every batch: ``any`` would make a generator each time
            if way_in.parked:
                return True
        return bool(self._barriers)

    def go_on(self) -> None:
        """Does a bounded part of it. Operators further down go first, to make room; a barrier goes on when no operator is parked."""
        idle = True
        for way_in in self._inputs:
            if way_in.parked:
                idle = False
                way_in.step()
        if idle and self._barriers and next(self._barriers[0], self) is self:
            self._barriers.popleft()

    def pass_barrier(self, work: Work) -> None:
        """Takes a barrier through the chain: now, or behind what is parked."""
        self._barriers.append(work)
        while self._barriers and not any(way_in.parked for way_in in self._inputs):
            self.go_on()

    def close(self) -> list[Exception]:
        """Drops all of it; gives back what that raised."""
        self._barriers.clear()
        errors: list[Exception] = []
        for way_in in self._inputs:
            try:
                way_in.close()
            except FlinkpyError as error:
                errors.append(error)
            except Exception as error:
                errors.append(user_code_error(error, way_in.operator.context))
        return errors


def _identity(work: Work) -> Work:
    return work


def _do_nothing() -> None:
    pass
