"""Types as a program declares them. A declared type makes records compact on the wire, gives rows
their names, maps to Arrow's types (``flinkpy.columns.values.arrow_types``), and decides how
``print`` writes a value. Values that the program has while it is built are checked against it.

``None`` is a value of every type. Values without a declared type are pickled:
``Types.PICKLED_BYTE_ARRAY()``."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from flinkpy.common.time import Instant
from flinkpy.common.types import Row, named_row
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse

Conversion: TypeAlias = Callable[[Any], Any]


class TypeInformation:
    """The type of a stream's values. Equal types compare equal; repr is their declaration, str the
    text of PyFlink."""

    def check(self, value: Any) -> None:
        """Raises ProgramError if ``value`` is not of this type."""

    def conversion(self) -> Conversion | None:
        """The function from user values to the operators' form (a tuple becomes a Row); None if
        they are equal."""
        return None

    def need_conversion(self) -> bool:
        """Whether the internal form differs from the value, as for rows and values that contain
        them."""
        return self.conversion() is not None

    def to_internal_type(self, obj: object) -> Any:
        """The value in the form in which it is sent: rows become plain tuples."""
        return obj

    def from_internal_type(self, obj: object) -> Any:
        """The value from the form in which it was sent."""
        convert = self.conversion()
        return obj if convert is None else convert(obj)

    def _parts(self) -> tuple[Any, ...]:
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((type(self).__name__, repr(self)))


def _refuse(value: object, wanted: TypeInformation, why: str = "") -> ProgramError:
    return ProgramError(
        f"{value!r:.100} is not a value of {wanted!r}"
        + (f": {why}" if why else f" (it is a {type(value).__name__})")
    )


_PYFLINKS_NAMES = {
    "INT": "Integer",
    "BIG_INT": "BigInteger",
    "BIG_DEC": "BigDecimal",
    "SQL_DATE": "DateTypeInfo",
    "SQL_TIME": "TimeTypeInfo",
    # of the others it writes the first letter large
    "SQL_TIMESTAMP": "TimestampTypeInfo",
}


class BasicTypeInfo(TypeInformation):
    """One of the scalar types. Integers have Flink's ranges."""

    def __init__(
        self, name: str, accepts: tuple[type, ...], low: int | None = None, high: int | None = None
    ) -> None:
        self.name = name
        self._accepts = accepts
        self._low = low
        self._high = high

    def check(self, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, self._accepts) or (
            isinstance(value, bool) and bool not in self._accepts
        ):
            # numpy's scalars count as Python's
            if hasattr(value, "item") and type(value).__module__ == "numpy":
                self.check(value.item())
                return
            raise _refuse(value, self)
        number: Any = value
        if (
            self._low is not None
            and self._high is not None
            and not self._low <= number <= self._high
        ):
            raise _refuse(value, self, f"outside {self._low} .. {self._high}")

    def _parts(self) -> tuple[Any, ...]:
        return (self.name,)

    def __str__(self) -> str:
        return _PYFLINKS_NAMES.get(self.name, self.name.capitalize())

    def __repr__(self) -> str:
        return f"Types.{self.name}()"


class PickledBytesTypeInfo(TypeInformation):
    """Any Python value."""

    def __str__(self) -> str:
        return "PickledByteArrayTypeInfo"

    def __repr__(self) -> str:
        return "Types.PICKLED_BYTE_ARRAY()"


class SqlTimeTypeInfo(BasicTypeInfo):
    """Dates and times of day, as classes of Python's ``datetime``."""


class InstantTypeInfo(BasicTypeInfo):
    """A point in time."""


class PrimitiveArrayTypeInfo(TypeInformation):
    """A list whose elements all have one basic type; for bytes, ``bytes``."""

    _NAME = "PRIMITIVE_ARRAY"

    def __init__(self, element_type: TypeInformation) -> None:
        self.element_type = _type(element_type, f"Types.{self._NAME}")

    def check(self, value: object) -> None:
        if value is None or (
            isinstance(value, (bytes, bytearray)) and self.element_type == Types.BYTE()
        ):
            return
        if isinstance(value, (str, bytes, dict)) or not isinstance(value, Iterable):
            raise _refuse(value, self)
        for each in value:
            self.element_type.check(each)

    def conversion(self) -> Conversion | None:
        inner = self.element_type.conversion()
        return (
            None
            if inner is None
            else lambda value: None if value is None else list(map(inner, value))
        )

    def to_internal_type(self, obj: Any) -> Any:
        return (
            list(map(self.element_type.to_internal_type, obj))
            if obj is not None and self.need_conversion()
            else obj
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.element_type,)

    def __str__(self) -> str:
        return f"{type(self).__name__}<{self.element_type}>"

    def __repr__(self) -> str:
        return f"Types.{self._NAME}({self.element_type!r})"


class BasicArrayTypeInfo(PrimitiveArrayTypeInfo):
    """A list whose elements all have one basic type or are None."""

    _NAME = "BASIC_ARRAY"


class ObjectArrayTypeInfo(PrimitiveArrayTypeInfo):
    """A list of values of any one type."""

    _NAME = "OBJECT_ARRAY"


class ListTypeInfo(PrimitiveArrayTypeInfo):
    """A Python list."""

    _NAME = "LIST"


class MapTypeInfo(TypeInformation):
    """A Python dict."""

    def __init__(self, key_type_info: TypeInformation, value_type_info: TypeInformation) -> None:
        self.key_type = _type(key_type_info, "Types.MAP")
        self.value_type = _type(value_type_info, "Types.MAP")

    def check(self, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, dict):
            raise _refuse(value, self)
        for key, each in value.items():
            self.key_type.check(key)
            self.value_type.check(each)

    def conversion(self) -> Conversion | None:
        inner = self.value_type.conversion()
        return (
            None
            if inner is None
            else lambda value: (
                None if value is None else {key: inner(each) for key, each in value.items()}
            )
        )

    def to_internal_type(self, obj: Any) -> Any:
        convert = self.value_type.to_internal_type
        return (
            {key: convert(each) for key, each in obj.items()}
            if obj is not None and self.need_conversion()
            else obj
        )

    def _parts(self) -> tuple[Any, ...]:
        return (self.key_type, self.value_type)

    def __str__(self) -> str:
        return f"MapTypeInfo<{self.key_type}, {self.value_type}>"

    def __repr__(self) -> str:
        return f"Types.MAP({self.key_type!r}, {self.value_type!r})"


class TupleTypeInfo(TypeInformation):
    """A Python tuple of fixed length."""

    def __init__(self, field_types: Sequence[TypeInformation]) -> None:
        self.field_types = _types(field_types, "Types.TUPLE")

    def get_field_types(self) -> list[TypeInformation]:
        return self.field_types

    def check(self, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, (tuple, list)):
            raise _refuse(value, self)
        _check_fields(self, value, self.field_types)

    def conversion(self) -> Conversion | None:
        inner = [each.conversion() for each in self.field_types]
        if not any(inner):
            return None
        return lambda value: (
            None
            if value is None
            else tuple(
                each if convert is None else convert(each) for convert, each in zip(inner, value)
            )
        )

    def to_internal_type(self, obj: Any) -> Any:
        if obj is None or not self.need_conversion():
            return obj
        return tuple(field.to_internal_type(each) for field, each in zip(self.field_types, obj))

    def _parts(self) -> tuple[Any, ...]:
        return tuple(self.field_types)

    def __str__(self) -> str:
        return f"TupleTypeInfo({', '.join(map(str, self.field_types))})"

    def __repr__(self) -> str:
        return f"Types.TUPLE([{', '.join(map(repr, self.field_types))}])"


class RowTypeInfo(TypeInformation):
    """A Row. Without names its fields are called f0, f1 and so on. Fields of a dict, and of a Row
    with these names, are taken by name, as in PyFlink; those of a value without names, or with
    entirely different ones, by position."""

    def __init__(
        self, field_types: Sequence[TypeInformation], field_names: Sequence[str] | None = None
    ) -> None:
        where = "Types.ROW_NAMED" if field_names is not None else "Types.ROW"
        self.field_types = _types(field_types, where)
        self._named = field_names is not None
        self.field_names = (
            [f"f{at}" for at in range(len(self.field_types))]
            if field_names is None
            else list(field_names)
        )
        if len(self.field_names) != len(self.field_types):
            raise refuse(
                f"{where}: {len(self.field_names)} names for {len(self.field_types)} types"
            )
        doubled = sorted({name for name in self.field_names if self.field_names.count(name) > 1})
        if doubled:
            raise refuse(f"{where}: the field name {doubled[0]!r} stands there twice")

    def get_field_names(self) -> list[str]:
        return self.field_names

    def get_field_types(self) -> list[TypeInformation]:
        return self.field_types

    def check(self, value: object) -> None:
        if value is None:
            return
        if not isinstance(value, (Row, dict, tuple, list)):
            raise _refuse(value, self)
        try:
            value = self._in_order(value)
        except ValueError as error:
            raise ProgramError(str(error)) from None
        _check_fields(self, value, self.field_types)

    def _in_order(self, value: Any) -> Any:
        """The fields' values in order. Raises ValueError if one is missing, and for a single value,
        such as a text."""
        is_single = isinstance(value, (str, bytes)) or not isinstance(value, Iterable)
        if is_single:
            raise ValueError(
                f"{value!r:.100} is no row of {', '.join(self.field_names)}: give a Row, a "
                "tuple, a list or a dict of its fields"
            )
        names: Any = (
            value
            if isinstance(value, dict)
            else value._fields
            if isinstance(value, Row) and self._named
            else None
        )
        if names is None:
            return value
        missing = [name for name in self.field_names if name not in names]
        if len(missing) == len(self.field_names) and isinstance(value, Row):
            return value
        if missing:
            raise ValueError(f"{value!r:.100} has no {missing[0]!r}, a field of its declared type")
        return [value[name] for name in self.field_names]

    def conversion(self) -> Conversion | None:
        names = tuple(self.field_names)
        in_order = self._in_order
        inner = [each.conversion() for each in self.field_types]
        is_deep = any(inner)

        def convert(value: object) -> Any:
            if value is None or (
                type(value) is not tuple
                and isinstance(value, Row)
                and value._fields == names
                and not is_deep
            ):
                return value
            values = list(value) if type(value) is tuple else list(in_order(value))
            if len(values) != len(names):
                raise ValueError(
                    f"{value!r:.100} has {len(values)} fields, its declared type "
                    f"{len(names)}: {', '.join(names)}"
                )
            if is_deep:
                values = [
                    each if change is None else change(each) for change, each in zip(inner, values)
                ]
            row = named_row(names, values)
            if isinstance(value, Row):
                row.set_row_kind(value.get_row_kind())
            return row

        return convert

    def to_internal_type(self, obj: object) -> Any:
        if obj is None:
            return None
        return tuple(
            field.to_internal_type(each)
            for field, each in zip(self.field_types, self._in_order(obj))
        )

    def _parts(self) -> tuple[Any, ...]:
        return (*self.field_names, *self.field_types)

    def __str__(self) -> str:
        fields = zip(self.field_names, self.field_types)
        return f"RowTypeInfo({', '.join(f'{name}: {field}' for name, field in fields)})"

    def __repr__(self) -> str:
        types = ", ".join(map(repr, self.field_types))
        return (
            f"Types.ROW_NAMED({self.field_names!r}, [{types}])"
            if self._named
            else f"Types.ROW([{types}])"
        )


def _check_fields(owner: TypeInformation, value: Any, types: list[TypeInformation]) -> None:
    if len(value) != len(types):
        raise _refuse(value, owner, f"it has {len(value)} fields instead of {len(types)}")
    for at, (field, each) in enumerate(zip(types, value)):
        try:
            field.check(each)
        except ProgramError as error:
            raise ProgramError(f"field {at}: {error}") from None


def _type(value: Any, where: str) -> TypeInformation:
    if isinstance(value, TypeInformation):
        return value
    hint = (
        f"; call it: {value.__qualname__}()"
        if getattr(value, "__name__", None) in dir(Types)
        else ", such as Types.STRING()"
    )
    raise refuse(f"{where} takes types{hint} (this is {value!r:.80})")


def _types(values: object, where: str) -> list[TypeInformation]:
    if isinstance(values, (str, bytes, TypeInformation)) or not isinstance(values, Iterable):
        raise refuse(
            f"{where} takes a list of types, such as [Types.STRING()] (this is {values!r:.80})"
        )
    return [_type(each, where) for each in values]


def _integer(name: str, bits: int) -> BasicTypeInfo:
    return BasicTypeInfo(name, (int,), -(1 << bits - 1), (1 << bits - 1) - 1)


class Types:
    """All types that a program can declare.

    >>> person = Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])
    >>> person.get_field_names()
    ['name', 'born']
    >>> person == Types.ROW_NAMED(["name", "born"], [Types.STRING(), Types.INT()])
    True
    """

    @staticmethod
    def STRING() -> TypeInformation:
        return BasicTypeInfo("STRING", (str,))

    @staticmethod
    def BOOLEAN() -> TypeInformation:
        return BasicTypeInfo("BOOLEAN", (bool,))

    @staticmethod
    def BYTE() -> TypeInformation:
        return _integer("BYTE", 8)

    @staticmethod
    def SHORT() -> TypeInformation:
        return _integer("SHORT", 16)

    @staticmethod
    def INT() -> TypeInformation:
        return _integer("INT", 32)

    @staticmethod
    def LONG() -> TypeInformation:
        return _integer("LONG", 64)

    @staticmethod
    def FLOAT() -> TypeInformation:
        return BasicTypeInfo("FLOAT", (float, int))

    @staticmethod
    def DOUBLE() -> TypeInformation:
        return BasicTypeInfo("DOUBLE", (float, int))

    @staticmethod
    def CHAR() -> TypeInformation:
        return BasicTypeInfo("CHAR", (str,))

    @staticmethod
    def BIG_INT() -> TypeInformation:
        """Integers of any size."""
        return BasicTypeInfo("BIG_INT", (int,))

    @staticmethod
    def BIG_DEC() -> TypeInformation:
        """``decimal.Decimal``."""
        return BasicTypeInfo("BIG_DEC", (decimal.Decimal,))

    @staticmethod
    def INSTANT() -> TypeInformation:
        """Values of :class:`flinkpy.common.time.Instant`, or datetimes."""
        return InstantTypeInfo("INSTANT", (Instant, datetime.datetime))

    @staticmethod
    def SQL_DATE() -> TypeInformation:
        return SqlTimeTypeInfo("SQL_DATE", (datetime.date,))

    @staticmethod
    def SQL_TIME() -> TypeInformation:
        return SqlTimeTypeInfo("SQL_TIME", (datetime.time,))

    @staticmethod
    def SQL_TIMESTAMP() -> TypeInformation:
        return SqlTimeTypeInfo("SQL_TIMESTAMP", (datetime.datetime,))

    @staticmethod
    def PICKLED_BYTE_ARRAY() -> TypeInformation:
        """Any Python value, pickled on the wire: the type of a stream that declares none."""
        return PickledBytesTypeInfo()

    @staticmethod
    def ROW(field_types: Sequence[TypeInformation]) -> TypeInformation:
        return RowTypeInfo(field_types)

    @staticmethod
    def ROW_NAMED(
        field_names: Sequence[str], field_types: Sequence[TypeInformation]
    ) -> TypeInformation:
        return RowTypeInfo(field_types, field_names)

    @staticmethod
    def TUPLE(field_types: Sequence[TypeInformation]) -> TypeInformation:
        return TupleTypeInfo(field_types)

    @staticmethod
    def PRIMITIVE_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return PrimitiveArrayTypeInfo(element_type)

    @staticmethod
    def BASIC_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return BasicArrayTypeInfo(element_type)

    @staticmethod
    def OBJECT_ARRAY(element_type: TypeInformation) -> TypeInformation:
        return ObjectArrayTypeInfo(element_type)

    @staticmethod
    def LIST(element_type_info: TypeInformation) -> TypeInformation:
        return ListTypeInfo(element_type_info)

    @staticmethod
    def MAP(key_type_info: TypeInformation, value_type_info: TypeInformation) -> TypeInformation:
        return MapTypeInfo(key_type_info, value_type_info)
