"""``percentile`` and ``median``. All values are kept, so that the result is exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.aggregates.algebra import OfColumns, floats_of_numbers
from flinkpy.aggregates.chunks import Chunks, by_group


class Percentile(OfColumns):
    """The value at a share of the way through the sorted values, as a float, with linear interpolation between its two
    neighbours. NaN is the greatest value."""

    name = "percentile"
    _share = 0.5

    def with_options(self, **options: Any) -> Percentile:
        made = type(self)()
        made._share = options.get("percentage", self._share)
        return made

    def computed_in(self, input_type: Any) -> Any:
        return floats_of_numbers(self.name, input_type)

    def needs_objects(self) -> bool:
        return True

    def is_exact_over(self, computed_in: Any) -> bool:
        return True

    def grouped(self, values: Any, codes: Any, groups: int) -> Any:
        import numpy as np

        found = np.full(groups, None, dtype=object)
        for group, accumulators, singles in by_group(values, codes):
            known = accumulators[0] if accumulators else None
            for each in accumulators[1:]:
                known = _with(known, _numbers(each).tolist())
            found[group] = _with(known, singles)
        return found

    def saved(self, accumulators: Any, computed_in: Any) -> Any:
        import pyarrow as pa

        return pa.array([_numbers(each) for each in accumulators], pa.list_(pa.float64()))

    def loaded(self, saved: Any) -> Any:
        import numpy as np

        found = np.empty(len(saved), dtype=object)
        found[:] = [_with(None, each) for each in saved.to_pylist()]
        return found

    def results(self, counts: Any, values: Any, accumulators: Callable[[], Any]) -> Any:
        import pyarrow as pa

        return pa.array([self._of(_numbers(each)) for each in values], pa.float64(), from_pandas=False)

    def _of(self, numbers: Any) -> float | None:
        import numpy as np

        if not len(numbers):
            return None
        position = self._share * (len(numbers) - 1)
        ordered, below = np.sort(numbers, kind="stable"), int(position)
        low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
        between = position - below
        return low if between == 0 or low == high else low + (high - low) * between


class Median(Percentile):
    name = "median"


def _numbers(accumulator: Any) -> Any:
    import numpy as np

    if type(accumulator) is Chunks:
        return np.concatenate(accumulator.chunks)
    return np.array([] if accumulator is None else [accumulator], np.float64)


def _with(known: Chunks[Any] | None, numbers: list[Any]) -> Chunks[Any] | None:
    import numpy as np

    new = np.array([number for number in numbers if number is not None], np.float64)
    if not len(new):
        return known
    return (Chunks(()) if known is None else known).with_chunk(new, lambda one, other: np.concatenate([one, other]))
