"""Generated functions over the fields of a row. Each field has a test that shows that its value
needs no conversion, which is nearly always so; only where it fails is the field's conversion
called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.codegen.generated import compile_function
from flinkpy.formats.parsed_texts import bounds


class Field(NamedTuple):
    """A field's name, the test of ``{v}`` that shows a value to be as it should be (or None), and
    its conversion."""

    name: str
    is_plain: str | None
    convert: Callable[[Any], Any]


def plain_test(type_info: TypeInformation) -> str | None:
    """The test of a value of a type that JSON has, too; None for other types."""
    name = getattr(type_info, "name", "")
    low, high = bounds(type_info)
    if low is not None:
        return f"{{v}}.__class__ is int and {low} <= {{v}} <= {high}"
    return {
        "STRING": "{v}.__class__ is str",
        "CHAR": "{v}.__class__ is str",
        "BOOLEAN": "{v}.__class__ is bool",
        "BIG_INT": "{v}.__class__ is int",
        "DOUBLE": "{v}.__class__ is float and {v} - {v} == 0.0",
    }.get(name)


def of_dict(fields: Sequence[Field], required: bool) -> Callable[[dict[str, Any]], list[Any]]:
    """What gives the converted values of a dict's fields, in order. A missing field is None, or
    KeyError if it is ``required``."""
    lines = ["def values(record):"]
    for at, field in enumerate(fields):
        lines += [
            f"    v{at} = record[{field.name!r}]"
            if required
            else f"    v{at} = record.get({field.name!r})",
            *_conversion(at, field),
        ]
    lines.append(f"    return [{', '.join(f'v{at}' for at in range(len(fields)))}]")
    return compile_function("values", "\n".join(lines), _names(fields))


def to_dict(fields: Sequence[Field]) -> Callable[[Sequence[Any]], dict[str, Any]]:
    """What gives a dict of the converted values, which it takes in order."""
    lines = [
        "def record(values):",
        f"    ({''.join(f'v{at}, ' for at in range(len(fields)))}) = values",
    ]
    for at, field in enumerate(fields):
        lines += _conversion(at, field)
    lines.append(
        f"    return {{{', '.join(f'{field.name!r}: v{at}' for at, field in enumerate(fields))}}}"
    )
    return compile_function("record", "\n".join(lines), _names(fields))


def _conversion(at: int, field: Field) -> list[str]:
    if field.is_plain is None:
        return [f"    if v{at} is not None:", f"        v{at} = convert{at}(v{at})"]
    return [
        f"    if v{at} is not None and not ({field.is_plain.format(v=f'v{at}')}):",
        f"        v{at} = convert{at}(v{at})",
    ]


def _names(fields: Sequence[Field]) -> dict[str, Any]:
    return {f"convert{at}": field.convert for at, field in enumerate(fields)}
