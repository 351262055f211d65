"""map, filter, flat_map, project: operators that look at one record at a time and keep nothing.

Each describes itself as a stage and is normally fused with its neighbours
(``flinkpy.operators.chain.fusion``). ``process_batch`` is the plain form, which is used when fusion
is off; a property test compares the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from flinkpy.core.codegen.idle_results import is_true
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import Guarding, Work
from flinkpy.operators.chain.stages import Stage, StageKind, StageOperator
from flinkpy.operators.functions import close_function, method_of, open_function
from flinkpy.operators.output.output_isolation import all_private, none_idle
from flinkpy.operators.row_batches import rows
from flinkpy.operators.user_errors import user_code_error
from flinkpy.operators.yielding import Moment, UntaggedResults, emit_results


class FunctionStageOperator(StageOperator):
    """A user function that is called once per record."""

    keeps_timestamps = True
    guarding = Guarding.BY_RECORD
    kind: StageKind
    method: str

    def __init__(self, function: object) -> None:
        # raises for what cannot be called, while the program is being built
        method_of(function, self.method)
        self.function = function

    def open(self) -> None:
        open_function(self.function, self.context)

    def close(self) -> None:
        close_function(self.function)

    def stage(self) -> Stage:
        return Stage(self.kind, method_of(self.function, self.method))

    def process_batch(self, batch: Batch) -> Work | None:
        self.before_batch()
        batch = rows(batch)
        function = self.stage().function
        value: Any = None
        values: list[Any] = []
        own = none_idle if self.context.object_reuse else all_private
        timestamps: list[int] | None = None if batch.timestamps is None else []
        try:
            for value, timestamp in zip(batch.values, batch.timestamps or [0] * len(batch)):
                results = self.apply(function, value)
                values.extend(own(results))
                if timestamps is not None:
                    timestamps.extend([timestamp] * (len(values) - len(timestamps)))
        except BaseException as error:
            raise user_code_error(error, self.context, value) from error
        self.output.emit(RowBatch(values, timestamps))
        return None

    @staticmethod
    def apply(function: Callable[[Any], Any], value: Any) -> list[Any] | tuple[Any, ...]:
        """The results for one value."""
        raise NotImplementedError


class MapOperator(FunctionStageOperator):
    """Emits one value for each value."""

    kind, method = StageKind.MAP, "map"

    @staticmethod
    def apply(function: Callable[[Any], Any], value: object) -> list[Any] | tuple[Any, ...]:
        return (function(value),)


class FilterOperator(FunctionStageOperator):
    """Keeps the values for which the function returns true."""

    kind, method = StageKind.FILTER, "filter"

    @staticmethod
    def apply(function: Callable[[Any], Any], value: object) -> list[Any] | tuple[Any, ...]:
        return (value,) if is_true(function(value)) else ()


class FlatMapOperator(FunctionStageOperator):
    """Emits any number of values for each value."""

    kind, method = StageKind.FLAT_MAP, "flat_map"
    parks = True

    def process_batch(self, batch: Batch) -> Work:
        self.before_batch()
        batch, function = rows(batch), self.stage().function
        return emit_results(
            lambda value, at: function(value),
            batch.values,
            batch.timestamps,
            Moment(),
            self,
            kind=UntaggedResults,
        )


class ProjectOperator(MapOperator):
    """Emits tuples of the fields at the chosen positions."""

    def __init__(self, indices: Sequence[int]) -> None:
        if not indices or any(not isinstance(index, int) for index in indices):
            raise ProgramError(f"project takes one or more positions (integers), not {indices!r}")
        self.indices = tuple(indices)
        only = self.indices[0]
        super().__init__(
            itemgetter(*self.indices) if len(self.indices) > 1 else lambda value: (value[only],)
        )
