"""Values of declared types as JSON values and back.

JSON has numbers, texts, truth values, lists and objects. Other values are texts as in files
(``text_values``): bytes in Base64, decimals with all digits, dates and times, and the floats
``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. A value that is not of its type is refused: 2.9 is no
``INT``, and 5 is no ``STRING``. Numbers with a decimal point are read as Decimals if the type needs
all digits (:func:`needs_all_digits`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeAlias

from flinkpy.common.typeinfo import (
    MapTypeInfo,
    PickledBytesTypeInfo,
    PrimitiveArrayTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
)
from flinkpy.common.types import named_row
from flinkpy.core.errors import ProgramError
from flinkpy.formats.exact_values import (
    elements,
    entries,
    exactly,
    fields_in_order,
    in_field,
    is_bytes_type,
)
from flinkpy.formats.generated_functions import Field, of_dict, plain_test, to_dict
from flinkpy.formats.parsed_texts import (
    NAMED_FLOATS,
    bounds,
    decimal,
    finite,
    in_range,
    parser_of,
    short_float,
)
from flinkpy.formats.text_values import single_text

Convert: TypeAlias = Callable[[Any], Any]

# what Python's json reads from a bare NaN and Infinity
BARE_FLOATS = {name: float(value) for name, value in NAMED_FLOATS.items()}
_AS_THEY_ARE = frozenset(("STRING", "CHAR", "BOOLEAN"))


def needs_all_digits(type_info: TypeInformation) -> bool:
    """Whether numbers with a decimal point must not be read as floats."""
    if isinstance(type_info, (RowTypeInfo, TupleTypeInfo)):
        return any(map(needs_all_digits, type_info.field_types))
    if isinstance(type_info, MapTypeInfo):
        return needs_all_digits(type_info.value_type)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return needs_all_digits(type_info.element_type)
    return getattr(type_info, "name", "") in ("BIG_DEC", "BIG_INT")


# -- from JSON -------------------------------------------------------------------------------------


def reader_of(type_info: TypeInformation, required: bool = False) -> Convert:
    """What makes a value of the type from what Python's ``json`` read. ``required``: rows must have
    all their fields. Raises ProgramError for a type that JSON cannot hold.

    >>> from flinkpy.common import Types
    >>> reader_of(Types.ROW_NAMED(["a", "b"], [Types.INT(), Types.LIST(Types.BIG_DEC())]))(
    ...     {"a": 1, "b": ["2.50"]}
    ... )
    Row(a=1, b=[Decimal('2.50')])
    """
    if isinstance(type_info, RowTypeInfo):
        return _row_reader(type_info, required)
    if isinstance(type_info, TupleTypeInfo):
        return _tuple_reader(type_info, required)
    if isinstance(type_info, MapTypeInfo):
        return _map_reader(type_info, required)
    if is_bytes_type(type_info):
        return _text_reader(type_info)
    if isinstance(type_info, PrimitiveArrayTypeInfo):
        return _list_reader(type_info, required)
    if isinstance(type_info, PickledBytesTypeInfo):
        return lambda value: value
    return _single_reader(type_info)


def _row_reader(type_info: RowTypeInfo, required: bool) -> Convert:
    names = tuple(type_info.field_names)
    values = of_dict(
        [
            Field(name, plain_test(each), in_field(name, reader_of(each, required)))
            for name, each in zip(names, type_info.field_types)
        ],
        required,
    )

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{_shown(value)} is no object with the fields {', '.join(names)}")
        try:
            return named_row(names, values(value))
        except KeyError as error:
            raise ValueError(f"field {error.args[0]!r} is missing") from None

    return read


def _tuple_reader(type_info: TupleTypeInfo, required: bool) -> Convert:
    readers = [_or_none(reader_of(each, required)) for each in type_info.field_types]

    def read(value: Any) -> Any:
        if type(value) is not list or len(value) != len(readers):
            raise ValueError(f"{_shown(value)} is no list of {len(readers)}")
        return tuple([convert(each) for convert, each in zip(readers, value)])

    return read


def _list_reader(type_info: PrimitiveArrayTypeInfo, required: bool) -> Convert:
    convert = _or_none(reader_of(type_info.element_type, required))

    def read(value: Any) -> Any:
        if type(value) is not list:
            raise ValueError(f"{_shown(value)} is no list")
        return list(map(convert, value))

    return read


def _map_reader(type_info: MapTypeInfo, required: bool) -> Convert:
    key, item = parser_of(type_info.key_type), _or_none(reader_of(type_info.value_type, required))
    if key is None:
        raise ProgramError(
            f"the keys of a JSON object are texts, so {type_info.key_type!r} cannot be the "
            "type of a map's keys"
        )

    def read(value: Any) -> Any:
        if type(value) is not dict:
            raise ValueError(f"{_shown(value)} is no object")
        entries_read = {key(name): item(each) for name, each in value.items()}
        if len(entries_read) != len(value):
            raise ValueError(f"{_shown(value)} has one key twice, in two forms")
        return entries_read

    return read


def _or_none(convert: Convert) -> Convert:
    return lambda value: None if value is None else convert(value)


def _text_reader(type_info: TypeInformation) -> Convert:
    parse = parser_of(type_info)
    assert parse is not None

    def read(value: Any) -> Any:
        if type(value) is not str:
            raise ValueError(
                f"{_shown(value)} is no text, in which JSON holds values of {type_info!r}"
            )
        return parse(value)

    return read


def _single_reader(type_info: TypeInformation) -> Convert:
    name = getattr(type_info, "name", "")
    if name in ("DOUBLE", "FLOAT"):
        return _double if name == "DOUBLE" else lambda value: short_float(_double(value))
    if name == "BIG_DEC":
        return _decimal
    if name == "BIG_INT" or bounds(type_info) != (None, None):
        check = in_range(type_info)
        return lambda value: check(_whole(value, type_info))
    if name not in _AS_THEY_ARE:
        return _text_reader(type_info)
    wanted = bool if name == "BOOLEAN" else str

    def read(value: Any) -> Any:
        if type(value) is not wanted:
            raise ValueError(f"{_shown(value)} is no value of {type_info!r}")
        return value

    return read


def _double(value: Any) -> float:
    if type(value) is float:
        # The number 1e999 is no infinity; the bare word is, as Python and Java write it
        return (
            value if any(value is each for each in BARE_FLOATS.values()) else finite(value, value)
        )
    if type(value) is int or type(value) is Decimal:
        try:
            return finite(float(value), value)
        except OverflowError:
            raise ValueError(f"{value!r:.80} is too large for a DOUBLE") from None
    if type(value) is str and value in NAMED_FLOATS:
        return NAMED_FLOATS[value]
    raise ValueError(f"{_shown(value)} is no number")


def _decimal(value: Any) -> Decimal:
    if type(value) is str:
        return decimal(value)
    if type(value) is int or type(value) is Decimal:
        return Decimal(value)
    raise ValueError(f"{_shown(value)} is no decimal")


def _whole(value: Any, type_info: TypeInformation) -> int:
    if type(value) is int:
        return value
    if type(value) is str and getattr(type_info, "name", "") == "BIG_INT":
        value = decimal(value)
    if type(value) in (float, Decimal) and math.isfinite(value) and int(value) == value:
        return int(value)
    raise ValueError(f"{_shown(value)} is no value of {type_info!r}")


def _shown(value: Any) -> str:
    return f"{value!r:.80} ({type(value).__name__})"


# -- to JSON ---------------------------------------------------------------------------------------


def writer_of(type_info: TypeInformation) -> Convert:
    """What makes of a value of the type what Python's ``json`` can write. Raises ValueError for a
    value that is not of the type, and ProgramError for a type that JSON cannot hold.

    >>> from flinkpy.common import Row, Types
    >>> writer_of(
    ...     Types.ROW_NAMED(["a", "b"], [Types.DOUBLE(), Types.PRIMITIVE_ARRAY(Types.BYTE())])
    ... )(Row(math.nan, b"abc"))
    {'a': 'NaN', 'b': 'YWJj'}
    """
    if isinstance(type_info, RowTypeInfo):
        return _row_writer(type_info)
    if isinstance(type_info, TupleTypeInfo):
        return _tuple_writer(type_info)
    if isinstance(type_info, MapTypeInfo):
        return _map_writer(type_info)
    if isinstance(type_info, PrimitiveArrayTypeInfo) and not is_bytes_type(type_info):
        convert = _or_none(writer_of(type_info.element_type))
        return lambda value: list(map(convert, elements(value)))
    if isinstance(type_info, PickledBytesTypeInfo):
        return lambda value: value
    return _single_writer(type_info)


def _row_writer(type_info: RowTypeInfo) -> Convert:
    record = to_dict(
        [
            Field(name, plain_test(each), in_field(name, writer_of(each)))
            for name, each in zip(type_info.field_names, type_info.field_types)
        ]
    )
    in_order = fields_in_order(type_info)
    return lambda value: record(in_order(value))


def _tuple_writer(type_info: TupleTypeInfo) -> Convert:
    writers = [_or_none(writer_of(each)) for each in type_info.field_types]

    def write(value: Any) -> list[Any]:
        listed = elements(value)
        if len(listed) != len(writers):
            raise ValueError(f"{value!r:.80} has {len(listed)} fields instead of {len(writers)}")
        return [convert(each) for convert, each in zip(writers, listed)]

    return write


def _map_writer(type_info: MapTypeInfo) -> Convert:
    key, item = key_text_of(type_info.key_type), _or_none(writer_of(type_info.value_type))
    if key is None:
        raise ProgramError(
            f"the keys of a JSON object are texts, so {type_info.key_type!r} cannot be the "
            "type of a map's keys"
        )

    def write(value: Any) -> dict[str, Any]:
        written = {key(name): item(each) for name, each in entries(value)}
        if len(written) != len(value):
            raise ValueError(f"{value!r:.80} has two keys that are the same {type_info.key_type!r}")
        return written

    return write


def key_text_of(type_info: TypeInformation) -> Convert | None:
    """What makes the text of a map's key, which is never None; None for types whose values have
    parts."""
    exact = exactly(type_info)
    if exact is None:
        return None

    def text(value: Any) -> str:
        found = exact(value)
        if found is None:
            raise ValueError("a map's key is None")
        written = _single_text(found)
        return (
            str(written).lower()
            if isinstance(written, bool)
            else written
            if isinstance(written, str)
            else repr(written)
        )

    return text


def _single_writer(type_info: TypeInformation) -> Convert:
    exact = exactly(type_info)
    if exact is None:
        raise ProgramError(
            f"JSON cannot hold values of {type_info!r}; declare what they are, such as "
            "Types.STRING()"
        )
    if getattr(type_info, "name", "") == "FLOAT":
        import numpy as np

        # The fewest digits that are read as the same 32 bits
        return lambda value: (
            None if (found := exact(value)) is None else _single_text(float(str(np.float32(found))))
        )
    return lambda value: _single_text(exact(value))


def _single_text(value: Any) -> Any:
    """The value, or its text if JSON has no such values."""
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return (
            value
            if math.isfinite(value)
            else "NaN"
            if math.isnan(value)
            else "Infinity"
            if value > 0
            else "-Infinity"
        )
    return single_text(value)
