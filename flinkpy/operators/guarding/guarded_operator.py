"""Runs an operator whose program has an error policy.

The operator is given one record at a time, and what it emits for the record is held back. If it
raises, these results are dropped, and it is given the record again, or a dead letter is emitted in
its place. So a function is called once for each record and each retry, and what it yielded before
it raised is withheld, in every form. What it did to its state stays.

Only the user's functions that take the record are guarded. A key selector, a timer, ``open`` and
``close`` fail the job: without a key nobody knows where a record belongs, and for a timer there is
no record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from flinkpy.common.error_policy import ErrorPolicy
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import (
    OneInputOperator,
    StreamOperator,
    TwoInputOperator,
    Work,
    run_to_end,
)
from flinkpy.operators.context import OperatorContext, Output
from flinkpy.operators.guarding.dead_letters import Letters, is_users
from flinkpy.operators.guarding.results_of_record import HeldResults
from flinkpy.operators.output.output_isolation import private
from flinkpy.operators.row_batches import each_record, rows, single_row
from flinkpy.operators.rows.keyed import key_function
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.wrapping_operator import Process, WrappingOperator

T = TypeVar("T")
Select = Callable[[Any], Any]


class GuardedOperator(WrappingOperator):
    """Wraps an operator, which is given its input by ``one_by_one``."""

    parks = True

    def __init__(self, guarded: StreamOperator, policy: ErrorPolicy) -> None:
        super().__init__(guarded)
        self.policy = policy

    def setup(self, context: OperatorContext, output: Output) -> None:
        super().setup(context, output)
        self.held = HeldResults(output)
        self.letters = Letters(self.policy, context)
        # the function may change the record it is given, so each call gets its own
        self.own = _same if context.object_reuse else private
        self.wrapped.do = self.do
        self.wrapped.setup(replace(context, explains_errors=False), self.held)

    def one_by_one(
        self, process: Process, select: Select | None, batch: RowBatch, input_number: int = 1
    ) -> Work:
        """Gives the operator the records of the batch, one at a time, and emits what it gave and
        the dead letters."""
        held, limit = self.held, self.context.batch_records
        for record, timestamp in each_record(batch):
            self._take(process, select, record, timestamp, input_number)
            if held.gathered >= limit:
                held.emit_gathered()
                yield
        held.emit_gathered()

    def _take(
        self,
        process: Process,
        select: Select | None,
        record: object,
        timestamp: int | None,
        input_number: int,
    ) -> None:
        """One record, with all its retries."""
        if select is not None:
            self.check_key(select, record)
        kept = self.own(record)
        try:
            self._give(process, record, timestamp)
        except BaseException as error:
            self.again(
                lambda own: self._give(process, own, timestamp),
                error,
                kept,
                timestamp,
                input_number,
            )
        self.held.keep()  # here, because what raises behind this operator is none of its errors

    def _give(self, process: Process, record: object, timestamp: int | None) -> None:
        """Gives the operator the record, and drops its results if it raises."""
        self.held.begin()
        try:
            work = process(single_row(record, timestamp))
            if work is not None:
                run_to_end(work)
        except Exception:
            self.held.drop()
            raise

    def again(
        self,
        call: Callable[[Any], T],
        error: BaseException,
        kept: object,
        timestamp: int | None,
        input_number: int = 1,
    ) -> T | None:
        """Called when a record's first call has raised ``error``: calls again, as often as the
        policy says, and gives what that gives. If it still raises, gathers a dead letter."""
        calls = 1
        while calls <= self.policy.retries and is_users(error):
            calls += 1
            try:
                return call(self.own(kept))
            except BaseException as another:
                error = another
        letter = self.letters.letter(error, kept, timestamp, calls=calls, input_number=input_number)
        self.held.add_letter(self.letters.side_output, letter)
        return None

    def check_key(self, select: Select, record: object) -> None:
        """Raises what the key selector raises. The operator calls it too, but there the error would
        pass for one of the function."""
        try:
            select(record)
        except BaseException as error:
            raise user_code_error(error, self.context, record) from error


class GuardedInput(GuardedOperator, OneInputOperator):
    """Wraps an operator with one input."""

    wrapped: OneInputOperator

    def __init__(self, guarded: OneInputOperator, policy: ErrorPolicy) -> None:
        super().__init__(guarded, policy)
        self.key: KeySpec | None = getattr(guarded, "key", None)

    def open(self) -> None:
        super().open()
        self._select = None if self.key is None else key_function(self.key)

    def process_batch(self, batch: Batch) -> Work:
        return self.one_by_one(self.wrapped.process_batch, self._select, rows(batch))


class GuardedInputs(GuardedOperator, TwoInputOperator):
    """Wraps an operator with two inputs."""

    wrapped: TwoInputOperator

    def __init__(self, guarded: TwoInputOperator, policy: ErrorPolicy) -> None:
        super().__init__(guarded, policy)
        self.keys: tuple[KeySpec, KeySpec] | None = getattr(guarded, "keys", None)

    def open(self) -> None:
        super().open()
        self._selects = (
            (None, None)
            if self.keys is None
            else (key_function(self.keys[0]), key_function(self.keys[1]))
        )

    def process_batch1(self, batch: Batch) -> Work:
        return self.one_by_one(self.wrapped.process_batch1, self._selects[0], rows(batch), 1)

    def process_batch2(self, batch: Batch) -> Work:
        return self.one_by_one(self.wrapped.process_batch2, self._selects[1], rows(batch), 2)

    def end_input(self, input_index: int) -> None:
        self.wrapped.end_input(input_index)


def _same(value: object) -> Any:
    return value
