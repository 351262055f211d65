"""Records of a declared type, on their way into files of text: what Parquet and Avro files refuse,
or convert, these do too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkpy.common.typeinfo import RowTypeInfo, TupleTypeInfo
from flinkpy.common.types import named_row
from flinkpy.core.errors import ProgramError
from flinkpy.formats.exact_values import each_converted, exactly, fields_in_order


class DeclaredRecords:
    """Gives each field an equal value of its declared type: 2 is 2.0 in a field of doubles, and
    80.42 is refused in one of integers. Values with parts stay as they are."""

    def __init__(self, type_info: RowTypeInfo | TupleTypeInfo) -> None:
        self._is_row = isinstance(type_info, RowTypeInfo)
        row_type = (
            type_info
            if isinstance(type_info, RowTypeInfo)
            else RowTypeInfo(list(type_info.field_types))
        )
        self._names = tuple(row_type.field_names)
        self._in_order = fields_in_order(row_type)
        self._converts = [exactly(each) or _same for each in row_type.field_types]

    def of(self, records: Sequence[Any]) -> list[Any]:
        """The records as rows or tuples. Raises ProgramError for one that is not of the type."""
        return [record if record is None else self._converted(record) for record in records]

    def _converted(self, record: object) -> Any:
        try:
            values = each_converted(self._names, self._converts, self._in_order(record))
        except ValueError as error:
            raise ProgramError(
                f"{record!r:.100} is not of the stream's declared type: {error}; declare what the "
                "records are, with output_type="
            ) from None
        return named_row(self._names, values) if self._is_row else tuple(values)


def _same(value: object) -> Any:
    return value
