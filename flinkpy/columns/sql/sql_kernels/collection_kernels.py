"""Functions of arrays, maps and rows over whole columns: what only puts columns together is
Arrow's, the rest is computed by value."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.sql.arrow_of_logical import arrow_of
from flinkpy.columns.sql.call_site import CallSite, Kernel, KernelOf
from flinkpy.columns.sql.sql_kernels.kernels_by_value import by_value
from flinkpy.columns.sql.sql_kernels.logic_kernels import column_of
from flinkpy.columns.sql.sql_meanings.collections.array_meanings import ARRAY_MEANINGS
from flinkpy.columns.sql.sql_meanings.collections.map_meanings import MAP_MEANINGS
from flinkpy.common.logical_types.logical_type import ArrayType, RowType


def _row(site: CallSite) -> Kernel:
    row = site.result
    assert isinstance(row, RowType)
    fields = [pa.field(each.name, arrow_of(each.type)) for each in row]

    def kernel(rows: int, *parts: Any) -> Any:
        columns = [column_of(part, rows).cast(each.type) for part, each in zip(parts, fields)]
        return pa.StructArray.from_arrays(columns, fields=fields)

    return kernel


def _array(site: CallSite) -> Kernel:
    """All columns one behind the other, from which each row takes its elements."""
    kind = arrow_of(site.result)

    def kernel(rows: int, *parts: Any) -> Any:
        columns = [column_of(part, rows).cast(kind.value_type) for part in parts]
        places = np.arange(rows * len(parts)).reshape(len(parts), rows).T.ravel()
        elements = pa.concat_arrays(columns).take(pa.array(places))
        offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * len(parts), pa.int32())
        return pa.ListArray.from_arrays(offsets, elements).cast(kind)

    return kernel


def _cardinality(site: CallSite) -> Kernel:
    if not isinstance(site.arguments[0], ArrayType):
        return by_value("CARDINALITY")(site)
    return lambda rows, array: column_of(pc.list_value_length(array), rows)


COLLECTION_KERNELS: dict[str, KernelOf] = {
    **{name: by_value(name) for meanings in (ARRAY_MEANINGS, MAP_MEANINGS) for name in meanings},
    "ROW": _row,
    "ARRAY": _array,
    "CARDINALITY": _cardinality,
}
