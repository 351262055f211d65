"""``count``: the number of values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import Aggregate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class Count(Aggregate):
    """Counts values. Over columns every aggregate keeps a count, and here that count is the
    result."""

    name = "count"
    of_fields = False
    only_counts = True
    of_numbers = False

    def first(self, value: Any) -> int:
        return 1

    def add(self, accumulator: int, value: Any) -> int:
        return accumulator + 1

    def merge(self, accumulator: int, other: int) -> int:
        return accumulator + other

    def computed_in(self, input_type: pa.DataType) -> Any:
        import pyarrow as pa

        return pa.int64()

    def identity(self, dtype: np.dtype[Any]) -> int:
        return 0

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        import pyarrow as pa

        return pa.array(counts)
