"""Work that an operator has begun and not finished: the operator is parked, and the task does the
work step by step.

A user's function may yield results slowly, or without end. So the code that calls it is a
generator, which emits the results so far and yields. The operator is then parked: whatever arrives
for it (batches, control elements, timers) waits behind that work, in order, and the current key
stays as it is. While an operator of a chain is parked, its task reads no input; it processes its
mail, and does the work as far as consumers have room."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import Any, TypeAlias

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.operators.base import StreamOperator, Work
from flinkpy.operators.chain.outputs import OperatorCounters, OperatorInput
from flinkpy.operators.user_errors import raise_told, user_code_error

# a barrier's way through a chain; each step says whether it can go on at once
Passing: TypeAlias = Generator[bool, None, None]


class ParkingInput(OperatorInput):
    """The input of an operator that may park. ``behind`` are the inputs downstream of it: it does
    not go on while one of them is parked."""

    __slots__ = ("_behind", "_waiting", "_work", "on_parked")

    def __init__(
        self,
        operator: StreamOperator,
        process: Callable[[Batch], Work | None],
        counters: OperatorCounters,
        behind: Sequence[ParkingInput],
    ) -> None:
        super().__init__(operator, process, counters)
        self._behind = tuple(behind)
        self._waiting: deque[tuple[Callable[..., Work | None], tuple[Any, ...]]] = deque()
        self._work: Work | None = None
        # Also called if mail parks the operator while the task waits for input
        self.on_parked: Callable[[], None] = _do_nothing
        operator.do = self.do

    @property
    def parked(self) -> bool:
        """Whether the operator has work left, or something waits behind its work."""
        return self._work is not None or bool(self._waiting)

    def push(self, batch: Batch) -> None:
        self._push(self.process, batch)

    def push_of(self, process: Callable[[Batch], Work | None]) -> Callable[[Batch], None]:
        return partial(self._push, process)

    def _push(self, process: Callable[[Batch], Work | None], batch: Batch) -> None:
        if type(batch) is RowBatch:
            self.counters.records_in += len(batch.values)
        else:
            self.counters.columns_came(batch)  # type: ignore[arg-type]
        self.call(process, batch)

    def call(self, function: Callable[..., Work | None], *arguments: Any) -> None:
        """Calls a method of the operator: at once, or after the parked work."""
        if self.parked:
            self._waiting.append((function, arguments))
            self.on_parked()
        else:
            self._begin(function, arguments)

    def do(self, work: Work) -> None:
        """Does work that the operator itself begins, for a timer: at once, or after the parked
        work."""
        self.call(_identity, work)

    def step(self) -> None:
        """Does a bounded part of the work, or begins what waits next, unless an operator downstream
        is parked."""
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
        except BaseException as error:
            raise_told(error, self.operator.context)

    def close(self) -> None:
        """Drops the work, and closes the generators of user functions where they are."""
        work, self._work = self._work, None
        self._waiting.clear()
        if work is not None:
            work.close()

    def __repr__(self) -> str:
        return (
            f"<ParkingInput of {self.operator!r}: {'parked' if self.parked else 'free'}, "
            f"{len(self._waiting)} waiting>"
        )


class ParkedWork:
    """All parked work of a chain, and the barriers that wait behind it. ``inputs`` are the inputs
    that may park, from tail to head."""

    def __init__(self, inputs: Sequence[ParkingInput]) -> None:
        self._inputs = tuple(inputs)
        self._barriers: deque[Passing] = deque()  # barriers on their way through the chain
        self._on_parked: Callable[[], None] = _do_nothing

    def set_listener(self, on_parked: Callable[[], None]) -> None:
        """Sets what to call when an operator parks, or a barrier has to wait; the listener should
        have ``go_on`` called soon."""
        self._on_parked = on_parked
        for way_in in self._inputs:
            way_in.on_parked = on_parked

    def pending(self) -> bool:
        """Whether there is parked work. If so, no input may be processed before ``go_on`` has done
        it."""
        # called for every batch: ``any`` would make a generator each time
        for way_in in self._inputs:
            if way_in.parked:
                return True
        return bool(self._barriers)

    def go_on(self) -> bool:
        """Does a bounded part of the work. Operators further downstream go first, to make room; a
        barrier goes on only while no operator is parked. False: an operator that the barrier has
        come to asks to wait."""
        idle = True
        for way_in in self._inputs:
            if way_in.parked:
                idle = False
                way_in.step()
        if not idle or not self._barriers:
            return True
        passed = next(self._barriers[0], None)
        if passed is None:
            self._barriers.popleft()
        return passed is not False

    def pass_barrier(self, passing: Passing) -> None:
        """Takes a barrier through the chain: at once, or after the parked work. It waits where an
        operator asks it to."""
        self._barriers.append(passing)
        while self._barriers and not any(way_in.parked for way_in in self._inputs):
            if not self.go_on():
                self._on_parked()  # the task may be waiting for input
                return

    def close(self) -> list[BaseException]:
        """Drops all parked work; returns the errors raised meanwhile."""
        self._barriers.clear()
        errors: list[BaseException] = []
        for way_in in self._inputs:
            try:
                way_in.close()
            except BaseException as error:  # SystemExit too, as the others are to be closed
                errors.append(user_code_error(error, way_in.operator.context))
        return errors


def _identity(work: Work) -> Work:
    return work


def _do_nothing() -> None:
    pass
