"""What aggregates that keep every value share. An accumulator is a collection of chunks, or None
without values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from itertools import chain
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.algebra import OfColumns
from flinkpy.aggregates.chunks import Chunks, by_group

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa


class KeptValues(OfColumns):
    """Its results are exact, in whatever parts the values come."""

    @abstractmethod
    def with_values(self, known: Chunks[Any] | None, values: Iterable[Any]) -> Chunks[Any] | None:
        """The accumulator with these values, some of which may be None."""

    @abstractmethod
    def values_in(self, accumulator: Any) -> Any:
        """The values of an accumulator, or of a single value."""

    def needs_objects(self) -> bool:
        return True

    def is_exact_over(self, computed_in: pa.DataType) -> bool:
        return True

    def grouped(self, values: npt.NDArray[Any], codes: npt.NDArray[np.int64], groups: int) -> Any:
        import numpy as np

        found = np.full(groups, None, dtype=object)
        for group, accumulators, singles in by_group(values, codes):
            known, others = (accumulators[0], accumulators[1:]) if accumulators else (None, [])
            found[group] = self.with_values(
                known, chain(*(chunk for each in others for chunk in each.chunks), singles)
            )
        return found

    def saved(self, accumulators: npt.NDArray[Any], computed_in: pa.DataType) -> Any:
        import pyarrow as pa

        return pa.array([self.values_in(each) for each in accumulators], pa.list_(computed_in))

    def loaded(self, saved: Any) -> Any:
        import numpy as np

        from flinkpy.columns.values.conversion import python_values

        found = np.empty(len(saved), dtype=object)
        found[:] = [self.with_values(None, each) for each in python_values(saved)]
        return found
