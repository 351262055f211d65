"""Types as functions of users declare them: of ``DataTypes``, as SQL writes them, or as annotations
of Python."""

from __future__ import annotations

import datetime
import typing
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.program.program_line import refuse
from flinkpy.sql.sql_errors import SqlError

_OF_ANNOTATIONS: dict[Any, LogicalType] = {
    bool: DataTypes.BOOLEAN(),
    int: DataTypes.BIGINT(),
    float: DataTypes.DOUBLE(),
    str: DataTypes.STRING(),
    bytes: DataTypes.BYTES(),
    Decimal: DataTypes.DECIMAL(38, 18),
    datetime.date: DataTypes.DATE(),
    datetime.time: DataTypes.TIME(),
    datetime.datetime: DataTypes.TIMESTAMP(6),
}


def type_of(declared: object, call: str) -> LogicalType:
    """A declared type. Raises ProgramError for what is none."""
    if isinstance(declared, LogicalType):
        return declared
    if isinstance(declared, TypeInformation):
        from flinkpy.common.logical_types.type_conversion import logical_type_of

        return logical_type_of(declared)
    if isinstance(declared, str):
        from flinkpy.sql.parsing.parse import parse_type

        try:
            return parse_type(declared)
        except SqlError as error:
            raise refuse(f"{call}: {declared!r} is no type: {error.problem}") from None
    raise refuse(f"{call}: a type is DataTypes.BIGINT() or 'BIGINT', this is {declared!r:.80}")


def type_list(declared: object, call: str) -> tuple[LogicalType, ...] | None:
    """Declared types of arguments; None if they are not declared."""
    if declared is None:
        return None
    several = declared if isinstance(declared, (list, tuple)) else (declared,)
    return tuple(type_of(each, call) for each in several)


def row_of(declared: object, call: str) -> RowType:
    """The type of the rows of a table function: of a ROW, or of one type for each column."""
    if not isinstance(declared, (list, tuple)):
        found = type_of(declared, call)
        if isinstance(found, RowType):
            return found
        declared = [found]
    types: Sequence[LogicalType] = [type_of(each, call) for each in declared]
    return RowType.of(*((f"f{at}", each) for at, each in enumerate(types)))


def type_of_annotation(code: Any) -> LogicalType | None:
    """The type that a function's annotation says it gives; None if there is none."""
    function = getattr(code, "eval", code)
    try:
        hints = typing.get_type_hints(function)
    except Exception:  # whatever annotations may be
        return None
    said = hints.get("return")
    options = [each for each in typing.get_args(said) if each is not type(None)]
    if len(options) == 1 and len(typing.get_args(said)) == 2:  # Optional
        said = options[0]
    return _OF_ANNOTATIONS.get(said) if isinstance(said, type) else None
