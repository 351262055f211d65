"""JSON_ARRAYAGG and JSON_OBJECTAGG. The values come as JSON already (the binder writes them with
JSON_STRING), so that here texts are joined."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.sql_meanings.json_texts.json_reading_meanings import compact
from flinkpy.core.errors import ProgramError
from flinkpy.relational.aggregates.accumulator_port import AggregateSite
from flinkpy.relational.aggregates.group_collections import Collected
from flinkpy.relational.relational_operator import plain


class JsonOfGroup(Collected):
    """What these share: a null is written, or left out (ON NULL)."""

    keeps_nulls = True
    on_null: str

    def __init__(self, site: AggregateSite) -> None:
        super().__init__(site)
        self._keeps_null = site.options.get("on_null", self.on_null) == "NULL"

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        columns = [plain(column) for column in columns]
        at = self._value
        if self._keeps_null:
            columns[at] = columns[at].fill_null("null")
        else:
            present = columns[at].is_valid()
            columns = [each.filter(present) for each in columns]
            groups = groups[present.to_numpy(zero_copy_only=False)]
        super().add(columns, groups, size)

    @property
    def _value(self) -> int:
        return len(self.site.arguments) - len(self.site.order) - 1


class JsonArrayOfGroup(JsonOfGroup):
    """JSON_ARRAYAGG: ``[1,2]``; without nulls unless the call says NULL ON NULL."""

    on_null = "ABSENT"

    def results(self, size: int) -> pa.Array:
        lists = self._lists(size)[0]
        inside = pc.fill_null(pc.binary_join(lists, ","), "")
        return pc.binary_join_element_wise("[", inside, "]", "").cast(self.site.result)


class JsonObjectOfGroup(JsonOfGroup):
    """JSON_OBJECTAGG: ``{"a":1,"b":2}``, with its names in order; with nulls unless the call says
    ABSENT ON NULL. A name that is null, or is there twice in a group, is an error."""

    on_null = "NULL"

    def add(self, columns: Sequence[pa.Array], groups: npt.NDArray[Any], size: int) -> None:
        if columns[0].null_count:
            raise ProgramError("a name of JSON_OBJECTAGG is null; leave such rows out with FILTER")
        super().add(columns, groups, size)

    def results(self, size: int) -> pa.Array:
        columns, starts = self._by_group(size)
        names, values = (column.to_pylist() for column in columns[:2])
        found = [_object(names[a:b], values[a:b]) for a, b in itertools.pairwise(starts.tolist())]
        return pa.array(found, self.site.result)


def _object(names: list[str], values: list[str]) -> str:
    pairs = sorted(zip(names, values))
    for (name, _), (following, _) in itertools.pairwise(pairs):
        if name == following:
            raise ProgramError(
                f"the name {compact(name)} is twice in a group of JSON_OBJECTAGG; names must differ"
            )
    return "{" + ",".join(f"{compact(name)}:{value}" for name, value in pairs) + "}"
