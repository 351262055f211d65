"""Variances and standard deviations, as floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import OfColumns, floats_of_numbers

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_FIELDS = [("n", "i8"), ("origin", "f8"), ("distance", "f8"), ("square", "f8")]


class Variance(OfColumns):
    """``var_pop``. An accumulator has the number of values, the first one, and the sums of the
    others' distances from it and of their squares. So values far from zero lose no digits, and sums
    are added from first to last, wherever batches are cut."""

    name = "var_pop"
    _of_sample = False
    _root = False

    def computed_in(self, input_type: pa.DataType) -> Any:
        return floats_of_numbers(self.name, input_type)

    def accumulator_dtype(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return np.dtype(_FIELDS)

    def identity(self, dtype: np.dtype[Any]) -> Any:
        import numpy as np

        return np.zeros((), dtype)[()]

    def is_exact_over(self, computed_in: pa.DataType) -> bool:
        return False

    def lifted(self, values: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None | None) -> Any:
        import numpy as np

        found = np.zeros(len(values), _FIELDS)
        found["n"], found["origin"] = 1 if present is None else present, values
        return found

    def grouped(
        self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64] | None, groups: int
    ) -> Any:
        import numpy as np

        codes = np.zeros(len(values), np.int64) if codes is None else codes
        there = np.flatnonzero(values["n"])
        values, codes = values[there], codes[there]
        found = np.zeros(groups, _FIELDS)
        # the last assignment wins: that of the first value
        found["origin"][codes[::-1]] = values["origin"][::-1]
        counts = values["n"]
        with np.errstate(all="ignore"):
            moved = values["origin"] - found["origin"][codes]
            np.add.at(found["n"], codes, counts)
            np.add.at(found["distance"], codes, values["distance"] + counts * moved)
            np.add.at(
                found["square"],
                codes,
                values["square"] + 2 * moved * values["distance"] + counts * moved * moved,
            )
        return found

    def saved(self, accumulators: npt.NDArray[Any], computed_in: pa.DataType) -> Any:
        import pyarrow as pa

        names = [name for name, _ in _FIELDS]
        return pa.StructArray.from_arrays([pa.array(accumulators[name]) for name in names], names)

    def loaded(self, saved: Any) -> Any:
        import numpy as np

        found = np.zeros(len(saved), _FIELDS)
        for name, _ in _FIELDS:
            found[name] = saved.field(name).to_numpy()
        return found

    def results(
        self,
        counts: npt.NDArray[np.int64],
        values: npt.NDArray[Any],
        accumulators: Callable[[], Any],
    ) -> Any:
        import numpy as np
        import pyarrow as pa

        count, least = values["n"], 2 if self._of_sample else 1
        with np.errstate(all="ignore"):
            squares = values["square"] - values["distance"] * values["distance"] / count
            found = np.maximum(squares, 0.0) / (count - 1 if self._of_sample else count)
            return pa.array(np.sqrt(found) if self._root else found, mask=count < least)


class SampleVariance(Variance):
    name = "var_samp"
    _of_sample = True


class Deviation(Variance):
    name = "stddev_pop"
    _root = True


class SampleDeviation(SampleVariance):
    name = "stddev_samp"
    _root = True
