"""``first_value`` and ``last_value``: in the order in which records arrive."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import OfColumns
from flinkpy.aggregates.extremes import kept_in

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class FirstValue(OfColumns):
    """An accumulator says whether there is a value, and which."""

    name = "first_value"
    of_numbers = False
    _is_last = False

    def add(self, accumulator: object, value: object) -> Any:
        return accumulator

    def computed_in(self, input_type: pa.DataType) -> Any:
        import pyarrow as pa

        return (
            kept_in(input_type, self.name)
            if pa.types.is_union(input_type) or not pa.types.is_nested(input_type)
            else input_type
        )

    def accumulator_dtype(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return np.dtype([("there", "?"), ("value", dtype)])

    def identity(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return np.zeros((), dtype)[()]

    def is_exact_over(self, computed_in: pa.DataType) -> bool:
        return True

    def lifted(self, values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None | None) -> Any:
        import numpy as np

        if values.dtype == object:
            return values
        found = np.empty(len(values), self.accumulator_dtype(values.dtype))
        found["there"], found["value"] = True if present is None else present, values
        return found

    def grouped(
        self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int
    ) -> Any:
        import numpy as np

        there = np.flatnonzero(values["there"])
        there = there if self._is_last else there[::-1]  # the last assignment wins
        found = np.zeros(groups, values.dtype)
        found[np.zeros(len(there), np.int64) if codes is None else codes[there]] = values[there]
        return found


class LastValue(FirstValue):
    name = "last_value"
    _is_last = True

    def add(self, accumulator: object, value: object) -> Any:
        return value
