"""The columns that a join of two sides gives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from flinkpy.columns.compiler import column_index
from flinkpy.core.errors import ProgramError
from flinkpy.operators.columnar.key_index import check_keys

SUFFIX = "_right"


class JoinedColumns:
    """The columns of the result: their names, and which column of which side each comes from. A
    column of both sides gets the suffix ``_right`` on the second; a key of one name is there once.
    ``optional``: a record may have no row on the right."""

    def __init__(
        self,
        keys: tuple[Sequence[str], Sequence[str]],
        left: Any,
        right: Any,
        call: str,
        *,
        optional: bool = False,
    ) -> None:
        for names, schema in zip(keys, (left, right)):
            check_keys(names, schema)
        for one, other in zip(*keys):
            types = (
                left.field(column_index(one, left)).type,
                right.field(column_index(other, right)).type,
            )
            if key_type(*types) is None:
                raise ProgramError(
                    f"{call}: the key {one!r} is {types[0]} and the key {other!r} is "
                    f"{types[1]}; cast one to the other's type"
                )
        same = {name for name, other in zip(*keys) if name == other}
        self.right = [at for at, name in enumerate(right.names) if name not in same]
        fields = list(left)
        for at in self.right:
            field = right.field(at).with_nullable(True) if optional else right.field(at)
            fields.append(
                field.with_name(field.name + SUFFIX) if field.name in left.names else field
            )
        names = [field.name for field in fields]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ProgramError(
                f"{call}: two columns of the result would be called {doubled[0]!r}; rename "
                "one before the join by select(...)"
            )
        self.schema = pa.schema(fields)


def key_type(left: Any, right: Any) -> Any:
    """The type in which the key columns are compared; None if they cannot be."""
    if pa.types.is_dictionary(left):
        left = left.value_type
    if pa.types.is_dictionary(right):
        right = right.value_type
    if left == right:
        return left
    if all(pa.types.is_integer(each) for each in (left, right)):
        if pa.uint64() not in (left, right):
            return pa.int64()
        return (
            pa.uint64()
            if all(pa.types.is_unsigned_integer(each) for each in (left, right))
            else None
        )
    if all(pa.types.is_string(each) or pa.types.is_large_string(each) for each in (left, right)):
        return pa.large_string()
    return None
