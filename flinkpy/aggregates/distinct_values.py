"""``count_distinct``: the number of different values. All of them are kept, so that the number is exact."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from flinkpy.aggregates.algebra import OfColumns
from flinkpy.aggregates.chunks import Chunks, by_group
from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import canonical_keys


class CountDistinct(OfColumns):
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

    def needs_objects(self) -> bool:
        return True

    def is_exact_over(self, computed_in: Any) -> bool:
        return True

    def grouped(self, values: Any, codes: Any, groups: int) -> Any:
        import numpy as np

        found = np.full(groups, None, dtype=object)
        for group, accumulators, singles in by_group(values, codes):
            new = set(singles)
            for each in accumulators[1:]:
                new.update(*each.chunks)
            found[group] = _with(accumulators[0] if accumulators else None, new)
        return found

    def saved(self, accumulators: Any, computed_in: Any) -> Any:
        import pyarrow as pa

        from flinkpy.columns.kernels.operand_types import counted_in

        kind = computed_in if counted_in(computed_in) is None else pa.int64()
        return pa.array([list(_values(each)) for each in accumulators], pa.list_(kind))

    def loaded(self, saved: Any) -> Any:
        import numpy as np

        found = np.empty(len(saved), dtype=object)
        found[:] = [_with(None, set(each)) for each in saved.to_pylist()]
        return found

    def result_type(self, computed_in: Any) -> Any:
        import pyarrow as pa

        return pa.int64()

    def results(self, counts: Any, values: Any, accumulators: Callable[[], Any]) -> Any:
        import pyarrow as pa

        return pa.array([sum(1 for _ in _values(each)) if type(each) is not Chunks else len(each) for each in values], pa.int64())


def _values(accumulator: Any) -> Iterator[Any]:
    if type(accumulator) is Chunks:
        for chunk in accumulator.chunks:
            yield from chunk
    elif accumulator is not None:
        yield accumulator


def _with(known: Chunks[frozenset[Any]] | None, values: set[Any]) -> Chunks[frozenset[Any]] | None:
    """The known values and those of them that are new."""
    values.discard(None)
    new = frozenset(canonical_keys(list(values)))
    if known is not None:
        new = new.difference(*known.chunks)
    if not new:
        return known
    return (Chunks[frozenset[Any]](()) if known is None else known).with_chunk(new, lambda one, other: one | other)
