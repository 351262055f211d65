"""ARRAY_AGG, LISTAGG and COLLECT: all values of a group are kept, and put together at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.operators.columnar.key_index import encoded
from flinkpy.relational.aggregates.accumulator_port import Accumulator, AggregateSite
from flinkpy.relational.aggregates.present_values import all_present
from flinkpy.relational.relational_operator import plain
from flinkpy.relational.sort_codes import codes_of, sorted_positions


class Collected(Accumulator):
    """What these share: the values by group, in the order that the call says."""

    keeps_nulls = False

    def __init__(self, site: AggregateSite) -> None:
        self.site = site
        self._columns: list[list[pa.Array]] = []
        self._groups: list[Any] = []

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        columns = [plain(column) for column in columns]
        present = None if self.keeps_nulls else all_present(columns[:1])
        if present is not None:
            columns, groups = [each.filter(pa.array(present)) for each in columns], groups[present]
        if len(groups):
            self._columns.append(columns)
            self._groups.append(groups)

    def _by_group(self, size: int) -> tuple[list[pa.Array], Any]:
        """The columns with the rows of each group together, and where each group begins; the last
        number is the end."""
        counts = np.zeros(size, np.int64)
        if not self._groups:
            kinds = self.site.arguments
            return [pa.array([], kind) for kind in kinds], np.append(0, np.cumsum(counts))
        groups = np.concatenate(self._groups)
        columns = [pa.concat_arrays(parts) for parts in zip(*self._columns)]
        codes = [groups, *codes_of(columns, self.site.order)]
        order = pa.array(sorted_positions(codes, len(groups)))
        counts = np.bincount(groups, minlength=size)
        return [column.take(order) for column in columns], np.append(0, np.cumsum(counts))

    def _lists(self, size: int) -> tuple[pa.Array, list[pa.Array]]:
        columns, starts = self._by_group(size)
        is_empty = starts[1:] == starts[:-1]
        # a null offset makes the list null
        offsets = pa.array(starts.astype(np.int32), mask=np.append(is_empty, False))
        return pa.ListArray.from_arrays(offsets, columns[0]), columns


class ArrayOfGroup(Collected):
    """ARRAY_AGG: nulls too, unless the call says IGNORE NULLS; null for a group without a row."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self.keeps_nulls = str(site.options.get("NULLS", "RESPECT")).upper() != "IGNORE"

    def results(self, size: int) -> pa.Array:
        return self._lists(size)[0].cast(self.site.result)


class ListOfGroup(Collected):
    """LISTAGG: the texts with a separator between them, a comma if the call names none; null for a
    group without a text."""

    def results(self, size: int) -> pa.Array:
        lists, columns = self._lists(size)
        count = len(self.site.arguments) - len(self.site.order)
        has_separator = count > 1 and len(columns[1])
        separator = columns[1][0].as_py() if has_separator else ","
        lists = lists.cast(pa.list_(pa.string()))
        return pc.binary_join(lists, separator).cast(self.site.result)


class MultisetOfGroup(Collected):
    """COLLECT: each value with the number of times that it is there; empty for a group without a
    value."""

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(replace(site, order=()))

    def results(self, size: int) -> pa.Array:
        columns, starts = self._by_group(size)
        groups = np.repeat(np.arange(size), np.diff(starts))
        distinct = encoded([pa.array(groups), columns[0]])
        firsts, counts = distinct.firsts, np.bincount(distinct.codes, minlength=distinct.count)
        order = np.argsort(firsts, kind="stable")
        of_group = np.bincount(groups[firsts], minlength=size)
        return pa.MapArray.from_arrays(
            pa.array(np.append(0, np.cumsum(of_group)).astype(np.int32)),
            columns[0].take(pa.array(firsts[order])),
            pa.array(counts[order].astype(np.int32)),
            self.site.result,
        )
