"""``count_distinct``: the number of different values. All of them are kept, so that the number is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flinkpy.aggregates.chunks import Chunks
from flinkpy.aggregates.kept_values import KeptValues
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_keys


class CountDistinct(KeptValues):
    """Values are different if they are different keys: all NaNs are one value, and both zeros are one."""

    name = "count_distinct"
    of_numbers = False

    def computed_in(self, input_type: Any) -> Any:
        import pyarrow as pa

        from flinkpy.columns.kernels.operand_types import is_text

        if pa.types.is_nested(input_type) or pa.types.is_union(input_type):
            raise ProgramError(f"count_distinct of {input_type} is not there; cast it, or take a part of it")
        if is_text(input_type):
            return pa.string()
        return input_type.value_type if pa.types.is_dictionary(input_type) else input_type

    def saved_in(self, computed_in: Any) -> Any:
        import pyarrow as pa

        from flinkpy.columns.kernels.operand_types import counted_in

        return computed_in if counted_in(computed_in) is None else pa.int64()

    def with_values(self, known: Chunks[frozenset[Any]] | None, values: Iterable[Any]) -> Chunks[frozenset[Any]] | None:
        different = set(values)
        different.discard(None)
        new = frozenset(canonical_keys(list(different)))
        if known is not None:
            new = new.difference(*known.chunks)
        if not new:
            return known
        return (Chunks[frozenset[Any]](()) if known is None else known).with_chunk(new, lambda one, other: one | other)

    def values_in(self, accumulator: Any) -> list[Any]:
        if type(accumulator) is Chunks:
            return [value for chunk in accumulator.chunks for value in chunk]
        return [] if accumulator is None else [accumulator]

    def result_type(self, computed_in: Any) -> Any:
        import pyarrow as pa

        return pa.int64()

    def results(self, counts: Any, values: Any, accumulators: Callable[[], Any]) -> Any:
        import pyarrow as pa

        return pa.array([len(each) if type(each) is Chunks else int(each is not None) for each in values], pa.int64())
