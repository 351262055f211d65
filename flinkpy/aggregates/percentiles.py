"""``percentile`` and ``median``. All values are kept, so that the result is exact."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import floats_of_numbers
from flinkpy.aggregates.chunks import Chunks
from flinkpy.aggregates.kept_values import KeptValues

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class Percentile(KeptValues):
    """The value at a share of the way through the sorted values, as a float, with linear
    interpolation between its two neighbours. NaN is the greatest value."""

    name = "percentile"
    _share = 0.5

    def with_options(self, **options: Any) -> Percentile:
        made = type(self)()
        made._share = options.get("percentage", self._share)
        return made

    def computed_in(self, input_type: pa.DataType) -> Any:
        return floats_of_numbers(self.name, input_type)

    def with_values(self, known: Chunks[Any] | None, values: Iterable[Any]) -> Chunks[Any] | None:
        import numpy as np

        new = np.array([number for number in values if number is not None], np.float64)
        if not len(new):
            return known
        return (Chunks(()) if known is None else known).with_chunk(
            new, lambda one, other: np.concatenate([one, other])
        )

    def values_in(self, accumulator: object) -> Any:
        import numpy as np

        if type(accumulator) is Chunks:
            return np.concatenate(accumulator.chunks)
        return np.array([] if accumulator is None else [accumulator], np.float64)

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        import pyarrow as pa

        return pa.array(
            [self._of(self.values_in(each)) for each in values], pa.float64(), from_pandas=False
        )

    def _of(self, numbers: Any) -> float | None:
        import numpy as np

        if not len(numbers):
            return None
        position = self._share * (len(numbers) - 1)
        ordered, below = np.sort(numbers, kind="stable"), int(position)
        low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
        between = position - below
        if between == 0 or low == high:
            return low
        # The distance of two large numbers may be infinite, while what lies between them is not
        return (
            low + (high - low) * between
            if math.isfinite(high - low)
            else low * (1 - between) + high * between
        )


class Median(Percentile):
    name = "median"
