"""CSV messages one by one: rows of a declared type, under PyFlink's names.

>>> from flinkpy.common import Row, Types
>>> visit = Types.ROW_NAMED(
...     ["shop", "note", "scores"], [Types.STRING(), Types.STRING(), Types.LIST(Types.INT())]
... )
>>> line = (
...     CsvRowSerializationSchema.Builder(visit)
...     .build()
...     .serialize(Row("Oslo, Norway", None, [1, 2]))
... )
>>> line
b'"Oslo, Norway",,1;2\\n'
>>> CsvRowDeserializationSchema.Builder(visit).build().deserialize(line)
Row(shop='Oslo, Norway', note=None, scores=[1, 2])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from flinkpy.common.serialization import DeserializationSchema, SerializationSchema
from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation
from flinkpy.common.types import named_row
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.csv.csv_cells import Dialect, cells_of, line_of
from flinkpy.formats.csv.csv_types import cell_parser, cell_writer
from flinkpy.formats.exact_values import each_converted, fields_in_order
from flinkpy.formats.json.json_rows import row_type
from flinkpy.formats.parsed_texts import Parse
from flinkpy.formats.port import MalformedMessageError

_B = TypeVar("_B", bound="_Builder")
_PARSE_ERRORS = (ValueError, TypeError, ArithmeticError)


class _Builder:
    """What both builders have."""

    _where = "CSV"

    def __init__(self, type_info: TypeInformation) -> None:
        self._type = csv_row_type(type_info, self._where)
        self._dialect = Dialect()

    def _with(self: _B, **characters: Any) -> _B:
        self._dialect = replace(self._dialect, **characters)
        return self

    def set_field_delimiter(self: _B, delimiter: str) -> _B:
        """The character between fields; by default a comma."""
        return self._with(delimiter=delimiter)

    def set_array_element_delimiter(self: _B, delimiter: str) -> _B:
        """The text between the elements of a list, and between the fields of a row inside the row;
        by default ``;``."""
        return self._with(array_delimiter=delimiter)

    def set_quote_character(self: _B, c: str) -> _B:
        """The character around texts that need it; by default ``"``."""
        return self._with(quote=c)

    def set_escape_character(self: _B, c: str) -> _B:
        """The character that makes the next one an ordinary one; by default there is none."""
        return self._with(escape=c)

    def set_null_literal(self: _B, null_literal: str) -> _B:
        """The text, without quotes, that stands for None; by default it is empty."""
        return self._with(null=null_literal)

    def _checked(self) -> Dialect:
        self._dialect.check(self._where)
        return self._dialect


class CsvRowDeserializationSchema(DeserializationSchema):
    """Rows of a declared type. A line with fewer or more fields, and a text that is no value of its
    field's type, raise MalformedMessageError.

    >>> from flinkpy.common import Types
    >>> CsvRowDeserializationSchema.Builder(
    ...     Types.ROW([Types.INT(), Types.STRING()])
    ... ).build().deserialize(b"1,a")
    Row(f0=1, f1='a')
    """

    def __init__(
        self,
        type_info: TypeInformation,
        dialect: Dialect,
        allow_comments: bool = False,
        ignore_parse_errors: bool = False,
    ) -> None:
        self._type = csv_row_type(type_info, "CsvRowDeserializationSchema")
        self._dialect = dialect
        self._comments = allow_comments
        self._ignore = ignore_parse_errors
        self._names = tuple(self._type.field_names)
        self._parsers = [_or_none(cell_parser(each, dialect)) for each in self._type.field_types]

    def deserialize(self, data: bytes) -> Any:
        """The row; None for a comment, and with ``ignore_parse_errors`` for a malformed message:
        sources leave it out."""
        if self._comments and data.startswith(b"#"):
            return None
        try:
            return named_row(self._names, self.values(str(data, "utf-8")))
        except _PARSE_ERRORS as error:
            if self._ignore:
                return None
            why = (
                f"it is no UTF-8 ({error.reason} at byte {error.start})"
                if isinstance(error, UnicodeDecodeError)
                else str(error)
            )
            raise MalformedMessageError(None, why, data) from error

    def values(self, line: str) -> list[Any]:
        """The values of a line. Raises ValueError if it is malformed."""
        cells = cells_of(line, self._dialect)
        if len(cells) != len(self._parsers):
            raise ValueError(f"it has {len(cells)} fields instead of {len(self._parsers)}")
        return each_converted(self._names, self._parsers, cells)

    def get_produced_type(self) -> TypeInformation:
        return self._type

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type, self._dialect, self._comments, self._ignore)

    class Builder(_Builder):
        """Makes the schema."""

        _where = "CsvRowDeserializationSchema"

        def __init__(self, type_info: TypeInformation) -> None:
            super().__init__(type_info)
            self._comments = self._ignore = False

        def set_allow_comments(self, allow_comments: bool) -> CsvRowDeserializationSchema.Builder:
            """Leaves lines that begin with ``#`` out."""
            self._comments = allow_comments
            return self

        def set_ignore_parse_errors(
            self, ignore_parse_errors: bool
        ) -> CsvRowDeserializationSchema.Builder:
            """Leaves malformed messages out."""
            self._ignore = ignore_parse_errors
            return self

        def build(self) -> CsvRowDeserializationSchema:
            """The schema. Raises ProgramError for characters that cannot be told apart."""
            return CsvRowDeserializationSchema(
                self._type, self._checked(), self._comments, self._ignore
            )


class CsvRowSerializationSchema(SerializationSchema):
    """Rows of a declared type as lines of CSV. Raises ProgramError for a value that is not of its
    field's type, and for one that could not be read back.

    >>> from flinkpy.common import Row, Types
    >>> CsvRowSerializationSchema.Builder(
    ...     Types.ROW([Types.INT(), Types.STRING()])
    ... ).set_line_delimiter("").build().serialize(Row(1, ""))
    b'1,""'
    """

    def __init__(self, type_info: TypeInformation, dialect: Dialect) -> None:
        self._type, self._dialect = csv_row_type(type_info, "CsvRowSerializationSchema"), dialect
        self._writers = [cell_writer(each, dialect) for each in self._type.field_types]
        self._in_order = fields_in_order(self._type)

    def serialize(self, value: object) -> bytes:
        """The row as a line."""
        try:
            return line_of(
                each_converted(self._type.field_names, self._writers, self._in_order(value)),
                self._dialect,
            ).encode()
        except _PARSE_ERRORS as error:
            why = (
                "a text has half of a surrogate pair, which UTF-8 does not have"
                if isinstance(error, UnicodeEncodeError)
                else error
            )
            raise ProgramError(f"{value!r:.100} cannot be written as CSV: {why}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._type, self._dialect)

    class Builder(_Builder):
        """Makes the schema."""

        _where = "CsvRowSerializationSchema"

        def set_line_delimiter(self, delimiter: str) -> CsvRowSerializationSchema.Builder:
            """What ends each message; by default ``\\n``."""
            return self._with(line_end=delimiter)

        def disable_quote_character(self) -> CsvRowSerializationSchema.Builder:
            """No quotes: texts that need them are refused."""
            return self._with(quote=None)

        def build(self) -> CsvRowSerializationSchema:
            """The schema. Raises ProgramError for characters that cannot be told apart."""
            return CsvRowSerializationSchema(self._type, self._checked())


def _or_none(parse: Parse) -> Callable[[str | None], Any]:
    return lambda text: None if text is None else parse(text)


def csv_row_type(type_info: object, where: str) -> RowTypeInfo:
    """The type, if it is one of rows with fields. Raises ProgramError if not."""
    found = row_type(type_info, where)
    if not found.field_types:
        raise refuse(f"{where}: a line of CSV has at least one field")
    return found
