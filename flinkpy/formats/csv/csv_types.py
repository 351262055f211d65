"""Values of declared types as fields of CSV and back. Lists, and rows inside rows, are one field of
single values with a delimiter of their own, as in PyFlink; CSV has nothing deeper, and no maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from flinkpy.common.typeinfo import (
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkpy.common.types import named_row
from flinkpy.core.program.program_line import refuse
from flinkpy.formats.csv.csv_cells import Dialect
from flinkpy.formats.exact_values import elements, exactly, fields_in_order
from flinkpy.formats.parsed_texts import Parse, parser_of
from flinkpy.formats.text_values import single_text


def cell_parser(type_info: TypeInformation, dialect: Dialect) -> Parse:
    """What makes a value of a field's text. Raises ProgramError for a type that CSV cannot hold.

    >>> from flinkpy.common import Types
    >>> cell_parser(Types.LIST(Types.INT()), Dialect())("1;2")
    [1, 2]
    """
    parse = parser_of(type_info)
    if parse is not None:
        return parse
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return _record_parser(type_info, dialect)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        element = _element_parser(type_info.element_type, dialect)
        return lambda text: list(map(element, text.split(dialect.array_delimiter))) if text else []
    raise _not_in_csv(type_info)


def _not_in_csv(type_info: TypeInformation) -> Exception:
    return refuse(
        "a field of CSV holds a single value, or a list or a row of single values, and no "
        f"{type_info!r}; choose JSON, Avro or Protobuf"
    )


def _element_parser(type_info: TypeInformation, dialect: Dialect) -> Callable[[str], Any]:
    parse = parser_of(type_info)
    if parse is None:
        raise _not_in_csv(type_info)
    null = dialect.null or None
    return lambda text: None if text == null else parse(text)


def _record_parser(type_info: RowTypeInfo | TupleTypeInfo, dialect: Dialect) -> Parse:
    parsers = [_element_parser(each, dialect) for each in type_info.field_types]
    names = tuple(type_info.field_names) if isinstance(type_info, RowTypeInfo) else None

    def parse(text: str) -> Any:
        texts = text.split(dialect.array_delimiter)
        if len(texts) != len(parsers):
            raise ValueError(f"{text!r:.80} has {len(texts)} parts instead of {len(parsers)}")
        values = [each(part) for each, part in zip(parsers, texts)]
        return tuple(values) if names is None else named_row(names, values)

    return parse


def cell_writer(type_info: TypeInformation, dialect: Dialect) -> Callable[[Any], str | None]:
    """What makes a field's text of a value. Raises ProgramError for a type that CSV cannot hold.

    >>> from flinkpy.common import Types
    >>> cell_writer(Types.LIST(Types.INT()), Dialect())([1, 2])
    '1;2'
    """
    exact = exactly(type_info)
    if exact is not None:
        text = _float_text if getattr(type_info, "name", "") == "FLOAT" else text_of
        return lambda value: None if (found := exact(value)) is None else text(found)
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return _record_writer(type_info, dialect)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        element = _element_writer(type_info.element_type, dialect)
        return lambda value: (
            None
            if value is None
            else _joined(list(map(element, elements(value))), value, dialect, True)
        )
    raise _not_in_csv(type_info)


def _element_writer(type_info: TypeInformation, dialect: Dialect) -> Callable[[Any], str | None]:
    if exactly(type_info) is None:
        raise _not_in_csv(type_info)
    return cell_writer(type_info, dialect)


def _record_writer(
    type_info: RowTypeInfo | TupleTypeInfo, dialect: Dialect
) -> Callable[[Any], str | None]:
    writers = [_element_writer(each, dialect) for each in type_info.field_types]
    in_order = fields_in_order(type_info) if isinstance(type_info, RowTypeInfo) else elements

    def write(value: object) -> str | None:
        if value is None:
            return None
        listed = in_order(value)
        if len(listed) != len(writers):
            raise ValueError(f"{value!r:.80} has {len(listed)} fields instead of {len(writers)}")
        return _joined([each(part) for each, part in zip(writers, listed)], value, dialect, False)

    return write


def _joined(texts: Sequence[str | None], value: object, dialect: Dialect, is_list: bool) -> str:
    """The elements' texts as one. Raises ValueError if they could not be told apart when they are
    read."""
    if any(text is None for text in texts) and not dialect.null:
        raise ValueError(f"{value!r:.80} has a None in it, for which there must be a null literal")
    same_as_null = dialect.null or None
    ambiguous = next(
        (
            text
            for text in texts
            if text is not None and (dialect.array_delimiter in text or text == same_as_null)
        ),
        None,
    )
    if ambiguous is not None:
        raise ValueError(
            f"{ambiguous!r:.80} cannot be an element of a list in CSV with the delimiter "
            f"{dialect.array_delimiter!r}"
        )
    if is_list and list(texts) == [""]:
        raise ValueError("a list of one empty text cannot be told from an empty list")
    return dialect.array_delimiter.join([dialect.null if text is None else text for text in texts])


def text_of(value: object) -> str:
    """The text of a single value, as files have it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, (int, float)) else single_text(value)


def _float_text(value: float) -> str:
    import numpy as np

    # The fewest digits that are read as the same 32 bits
    return repr(float(str(np.float32(value)))) if math.isfinite(value) else repr(value)
