"""MIN and MAX. NaN is greater than all other floats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import Grown
from flinkpy.relational.aggregates.accumulator_port import (
    Accumulator,
    AggregateSite,
    ArrayAccumulator,
    Groups,
)
from flinkpy.relational.aggregates.present_values import numbers_of, wrapped
from flinkpy.relational.relational_operator import plain

_WAITING = 1 << 15


def extreme(site: AggregateSite) -> Accumulator:
    """The form of MIN or MAX for the argument's type."""
    kind = site.arguments[0]
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if is_number or pa.types.is_temporal(kind) or pa.types.is_boolean(kind):
        return ExtremeNumber(site)
    if pa.types.is_nested(kind):
        raise ProgramError(f"{site.function} is not for values of the type {kind}")
    return ExtremeValue(site)


class ExtremeNumber(ArrayAccumulator):
    """Of what numpy compares: numbers, times, truth values."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._is_least = site.function.upper() == "MIN"
        self.partial_types = (site.result,)
        self._dtype, first = self._numbers()
        self._values = Grown(self._dtype, first)
        self._has = Grown(np.bool_, False)
        self.arrays = (self._values, self._has)

    def _numbers(self) -> tuple[Any, Any]:
        kind = self._result
        if pa.types.is_floating(kind):  # fmin skips NaN, maximum keeps it
            return np.dtype(np.float64), np.nan if self._is_least else -np.inf
        limits = np.iinfo(np.int64)
        return np.dtype(np.int64), limits.max if self._is_least else limits.min

    def change(
        self,
        columns: Sequence[pa.Array],
        groups: npt.NDArray[Any],
        signs: npt.NDArray[Any] | None,
        size: int,
    ) -> None:
        values, present = numbers_of(columns[0])
        if present is not None:
            values, groups = values[present], groups[present]
        if self._dtype.kind == "f":
            extreme_of: Any = np.fmin if self._is_least else np.maximum
        else:
            extreme_of = np.minimum if self._is_least else np.maximum
        with np.errstate(invalid="ignore"):
            extreme_of.at(self._values.reach(size), groups, values.astype(self._dtype, copy=False))
        self._has.reach(size)[groups] = True

    def results_of(self, groups: Groups) -> pa.Array:
        return wrapped(self._values.values[groups], self._result, ~self._has.values[groups])

    def partial_of(self, groups: Groups) -> list[pa.Array]:
        return [self.results_of(groups)]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.add(columns, groups, size)


class ExtremeValue(Accumulator):
    """Of what Arrow compares: text, bytes, decimals. Values wait until there are many, and are then
    reduced to one a group."""

    def __init__(self, site: AggregateSite) -> None:
        self._result = site.result
        self._function = site.function.lower()
        self.partial_types = (site.result,)
        self._waiting: list[pa.Table] = []
        self._rows = 0

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        values = plain(columns[0])
        self._waiting.append(pa.table([pa.array(groups), values], names=["group", "value"]))
        self._rows += len(groups)
        if self._rows > 2 * size + _WAITING:
            self._reduce()

    def _reduce(self) -> pa.Table:
        table = pa.concat_tables(self._waiting).group_by("group", use_threads=False)
        found = table.aggregate([("value", self._function)])
        found = found.select(["group", f"value_{self._function}"]).rename_columns(
            ["group", "value"]
        )
        self._waiting, self._rows = [found], found.num_rows
        return found

    def results(self, size: int) -> pa.Array:
        if not self._waiting:
            return pa.nulls(size, self._result)
        found = self._reduce().combine_chunks()
        at = np.full(size, -1, np.int64)
        at[found.column("group").to_numpy()] = np.arange(found.num_rows)
        values = found.column("value").combine_chunks()
        return values.take(pa.array(at, mask=at < 0)).cast(self._result)

    def partial(self, size: int) -> list[pa.Array]:
        return [self.results(size)]

    def merge(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        self.add(columns, groups, size)
