"""Runs map, filter and flat_map with an error policy: a loop that calls the function for each
record, in a ``try`` of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.core.codegen.idle_results import is_true
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.mutability import ATOMS
from flinkpy.operators.base import Work
from flinkpy.operators.chain.stages import StageKind, StageOperator
from flinkpy.operators.guarding.guarded_operator import GuardedInput
from flinkpy.operators.output.output_isolation import all_private, none_idle, private
from flinkpy.operators.row_batches import rows


class GuardedStage(GuardedInput):
    """Wraps a stage: without the wrapped operator's own loop, which takes a batch, this one is four
    times as fast."""

    wrapped: StageOperator

    def open(self) -> None:
        super().open()
        stage = self.wrapped.stage()
        self._call = _WITH_RESULTS[stage.kind](stage.function)

    def process_batch(self, batch: Batch) -> Work:
        self.wrapped.before_batch()
        batch = rows(batch)
        call = self._call
        select = self._select
        reuse = self.context.object_reuse
        own = none_idle if reuse else all_private
        limit = self.context.batch_records
        stamps, values, kept_stamps = batch.timestamps, list[Any](), list[int]()
        for position, record in enumerate(batch.values):
            if select is not None:
                self.check_key(select, record)
            kept = record if type(record) in ATOMS or reuse else private(record)
            try:
                given = own(call(record))
            except BaseException as error:
                stamp = None if stamps is None else stamps[position]
                given = own(self.again(call, error, kept, stamp) or ())
            values += given
            if stamps is not None and len(values) > len(kept_stamps):
                kept_stamps += [stamps[position]] * (len(values) - len(kept_stamps))
            if len(values) >= limit:
                self._emit(values, None if stamps is None else kept_stamps)
                values, kept_stamps = [], []
                yield
        self._emit(values, None if stamps is None else kept_stamps)

    def _emit(self, values: list[Any], stamps: list[int] | None) -> None:
        """Emits the dead letters, then the results."""
        self.held.emit_gathered()
        self.output.emit(RowBatch(values, stamps))


def _mapped(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda record: (function(record),)


def _filtered(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda record: (record,) if is_true(function(record)) else ()


def _flat_mapped(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def call(record: object) -> Any:
        given = function(record)
        return (
            ()
            if given is None
            else given
            if type(given) is list or type(given) is tuple
            else list(given)
        )

    return call


_WITH_RESULTS = {
    StageKind.MAP: _mapped,
    StageKind.FILTER: _filtered,
    StageKind.FLAT_MAP: _flat_mapped,
}
