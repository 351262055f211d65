"""``count_distinct``: the number of different values. All of them are kept, so that the number is
exact."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.chunks import Chunks
from flinkpy.aggregates.kept_values import KeptValues
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_keys

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class CountDistinct(KeptValues):
    """Values are different if they are different keys: all NaNs are one value, and both zeros are
    one."""

    name = "count_distinct"
    of_numbers = False

    def computed_in(self, input_type: pa.DataType) -> Any:
        return _compared(input_type)

    def with_values(
        self, known: Chunks[frozenset[Any]] | None, values: Iterable[Any]
    ) -> Chunks[frozenset[Any]] | None:
        different = set(values)
        different.discard(None)
        new = frozenset(canonical_keys(list(different)))
        if known is not None:
            new = new.difference(*known.chunks)
        if not new:
            return known
        return (Chunks[frozenset[Any]](()) if known is None else known).with_chunk(
            new, lambda one, other: one | other
        )

    def values_in(self, accumulator: object) -> list[Any]:
        if type(accumulator) is Chunks:
            return [value for chunk in accumulator.chunks for value in chunk]
        return [] if accumulator is None else [accumulator]

    def saved(self, accumulators: npt.NDArray[Any], computed_in: pa.DataType) -> Any:
        import pyarrow as pa

        from flinkpy.columns.values.exact_arrays import array_of

        return array_of([self.values_in(each) for each in accumulators], pa.list_(computed_in))

    def result_type(self, computed_in: pa.DataType) -> Any:
        import pyarrow as pa

        return pa.int64()

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        import pyarrow as pa

        return pa.array(
            [len(each) if type(each) is Chunks else int(each is not None) for each in values],
            pa.int64(),
        )


def _compared(kind: pa.DataType) -> Any:
    """The type in which values are kept: text without a dictionary, moments as numbers, also in
    structs. Raises ProgramError for what is no key."""
    import pyarrow as pa

    from flinkpy.columns.kernels.operand_types import counted_in, is_text

    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_compared(field.type)) for field in kind])
    if pa.types.is_nested(kind) or pa.types.is_union(kind):
        raise ProgramError(f"count_distinct of {kind} is not there; cast it, or take a part of it")
    if is_text(kind):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return _compared(kind.value_type)
    return counted_in(kind) or kind
