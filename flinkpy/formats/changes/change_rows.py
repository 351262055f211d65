"""What the decoders of changes share: which rows come of messages, and columns of some fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.common.types import RowKind
from flinkpy.formats.port import DecodedChanges, MalformedMessageError

INSERT, BEFORE, AFTER, DELETE = (kind.value for kind in RowKind)
REPLICA_IDENTITY = (
    'the "before" field of {} message is null; a table of Postgres gives it with '
    "REPLICA IDENTITY FULL"
)


def takes_back(kinds: Any) -> Any:
    """Which rows take one back: -U and -D."""
    return (kinds == BEFORE) | (kinds == DELETE)


def nullable(schema: pa.Schema) -> list[pa.Field]:
    """The fields, whose values may be null: of a row before that is not there they are."""
    return [field.with_nullable(True) for field in schema]


def changes_of(
    columns: Sequence[Any], schema: pa.Schema, kinds: Sequence[int] | Any, origins: Any
) -> DecodedChanges:
    """Columns of values as changes of a schema. Raises MalformedMessageError for a null where there
    may be none."""
    origins = np.asarray(origins, np.int64)
    for field, column in zip(schema, columns):
        if not field.nullable and column.null_count:
            first = pc.index(column.is_null(), True).as_py()
            raise MalformedMessageError(
                int(origins[first]), f"column {field.name!r} has a null, and it is NOT NULL"
            )
    if columns:
        batch = pa.RecordBatch.from_arrays(list(columns), schema=schema)
    else:
        batch = pa.RecordBatch.from_struct_array(pa.array([{}] * len(origins), pa.struct([])))
    return DecodedChanges(batch, np.asarray(kinds, np.int8), origins)
