"""A Spark DataFrame as one Arrow table in this process. Any Spark session will do, also one that is
not on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def arrow_table_of(frame: DataFrame) -> pa.Table:
    """All of its rows."""
    collect: Any = getattr(frame, "toArrow", None)  # from Spark 4 on
    if collect is not None:
        return collect()
    from pyspark.sql.pandas.types import to_arrow_schema

    batches = frame._collect_as_arrow()
    return pa.Table.from_batches(batches, None if batches else to_arrow_schema(frame.schema))
