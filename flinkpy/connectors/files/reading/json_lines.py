"""Blocks of JSON lines as columns.

Arrow's JSON reader takes text that looks like a datetime for a timestamp, drops its zone, and
cannot read dates and times of day. So columns of time are read as text, which the source casts.
That keeps zones; and a text with a zone is refused in a column without one, and vice versa. The
reader accepts non-finite numbers only as bare ``NaN`` and ``Infinity``, which JSON does not have;
files hold them as quoted text in columns of floats."""

from __future__ import annotations

import json as std_json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json

from flinkpy.connectors.files.reading.merged_schemas import floats_for_numbers
from flinkpy.formats.text_columns import (
    as_text,
    changed,
    decoded,
    first_text,
    is_of_bytes,
    refuse_rounded,
    rounded,
    with_large_floats,
)

_NAMED_FLOAT = rb'\s*)"(NaN|-?Infinity)"(?=\s*[,}\]])'
_LIST_OF_FLOATS = rb'\s*(\[(?:[^"{}]|"(?:NaN|-?Infinity)")*\])'
_QUOTED_FLOAT = rb'"(NaN|-?Infinity)"\s*[,}\]]'
_ANY_NUMBER = re.compile(rb"-?\d[-+.\deE]*")
_MOST_DIGITS = 38  # no integer of Arrow has more
_BEGINS_WITH_NULL = re.compile(rb"\s*null")
_BEGINS_A_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}")
_ANY_NAMED_FLOAT = re.compile(rb"([:\[,]" + _NAMED_FLOAT)
# Shown by texts that all name floats: what other blocks and files show decides whether they are.
# (No other values show this type.)
NAMED_FLOATS = pa.float16()


def shown_schema(block: bytes) -> Any:
    """The schema that the first lines show. Columns of only nulls and texts that name floats are
    shown as ``NAMED_FLOATS``."""
    try:
        shown = _read(block, None).schema
    except pa.ArrowInvalid as error:
        if not any(
            change in str(error)
            for change in ("number to string", "string to number", "null to string")
        ):
            raise
        shown = _read(_ANY_NAMED_FLOAT.sub(rb"\1null", block), None).schema
    if _ANY_NAMED_FLOAT.search(block):
        shown = _with_named_floats(block, shown)
    texts = parse_lines(block, with_plain_floats(as_text(shown, _is_of_time)))
    found = pa.schema([field.with_type(_type_of(texts[field.name], field.type)) for field in shown])
    for name in _large(texts):
        in_decimals = found.set(
            found.get_field_index(name), pa.field(name, pa.decimal128(_MOST_DIGITS, 0))
        )
        if next(rounded(_integers(block, name)), None) is not None and _is_readable(
            block, with_plain_floats(in_decimals)
        ):
            found = in_decimals
    return found


def _with_named_floats(block: bytes, shown: Any) -> Any:
    """The schema with types of floats for the columns in which texts name floats, and no text is
    another one."""
    without = _read(_ANY_NAMED_FLOAT.sub(rb"\1null", block), None).schema
    return pa.schema(
        [
            field.with_type(_named(field.name, field.type, without.field(field.name).type, block))
            for field in shown
        ]
    )


def _named(name: str, shown: Any, without: Any, block: bytes) -> Any:
    """The type of the field ``name``, which shows this type, and ``without`` if the names of floats
    are taken for nulls."""
    if pa.types.is_struct(shown) and pa.types.is_struct(without):
        return pa.struct(
            [
                field.with_type(
                    _named(field.name, field.type, without.field(field.name).type, block)
                )
                for field in shown
            ]
        )
    if pa.types.is_list(shown) and pa.types.is_list(without):
        return pa.list_(
            shown.value_field.with_type(_named(name, shown.value_type, without.value_type, block))
        )
    if pa.types.is_null(without) and pa.types.is_string(shown):
        return NAMED_FLOATS
    names_floats = re.search(_begins(name) + rb'[^"{}]*' + _QUOTED_FLOAT, block) is not None
    if pa.types.is_null(without) and names_floats:
        return NAMED_FLOATS
    return pa.float64() if pa.types.is_integer(without) and names_floats else shown


def with_plain_floats(schema: pa.Schema) -> Any:
    """The schema with floats in place of ``NAMED_FLOATS``."""
    return changed(schema, lambda kind: pa.float64() if kind == NAMED_FLOATS else kind)


def _integers(block: bytes, name: str) -> Any:
    """The long integers of this field, as texts."""
    return pa.array(
        [
            number.decode()
            for number in re.findall(_begins(name) + rb"(-?\d{16,})(?=\s*[,}])", block)
        ],
        pa.string(),
    )


def _is_readable(block: bytes, schema: pa.Schema) -> bool:
    try:
        _read(block, as_text(schema, _is_of_time))
    except pa.ArrowInvalid:
        return False
    return True


def _begins(name: str) -> bytes:
    return rb'"' + re.escape(name.encode()) + rb'"\s*:\s*'


def _type_of(texts: Any, shown: Any) -> Any:
    """The type of a column. Texts of moments, with or without fractions of a second, hold
    microseconds."""
    if pa.types.is_struct(shown):
        return pa.struct(
            [
                field.with_type(_type_of(part, field.type))
                for field, part in zip(shown, texts.flatten())
            ]
        )
    if pa.types.is_list(shown):
        return pa.list_(
            shown.value_field.with_type(_type_of(pc.list_flatten(texts), shown.value_type))
        )
    if pa.types.is_string(shown) or pa.types.is_timestamp(shown):
        moments = (
            (pa.timestamp("us"), pa.timestamp("us", "UTC"))
            if _BEGINS_A_MOMENT.match(first_text(texts))
            else ()
        )
        return next((kind for kind in moments if _casts(texts, kind)), pa.string())
    return shown


def type_for_both(one: pa.DataType, other: pa.DataType) -> Any:
    """The type of a column that is shown as these two; None if there is none. Moments and names of
    floats beside other texts are texts."""
    if all(
        pa.types.is_string(kind) or pa.types.is_timestamp(kind) or kind == NAMED_FLOATS
        for kind in (one, other)
    ):
        return pa.string()
    return floats_for_numbers(one, other)


def parse_lines(block: bytes, schema: pa.Schema, *, ignore_extra_fields: bool = False) -> Any:
    """The lines as a table of this schema, except that datetimes and dates are text. Raises
    ArrowInvalid for values that do not fit, and for unknown fields unless they are ignored."""
    others = "ignore" if ignore_extra_fields else "error"
    moments_as_text = as_text(schema, lambda kind: _is_of_time(kind) and not pa.types.is_time(kind))
    read_as = as_text(moments_as_text, lambda kind: pa.types.is_time(kind) or is_of_bytes(kind))
    try:
        read = _read(block, read_as, others)
    except pa.ArrowInvalid as error:
        known = (
            _with_bare_floats(block, schema)
            if "number to string" in str(error) or "string to number" in str(error)
            else block
        )
        known = _with_plain_integers(known, schema) if "couldn't parse" in str(error) else known
        if known == block:
            raise
        read = _read(known, read_as, others)
    _refuse_other_lines(block, read.num_rows)
    if read_as.equals(moments_as_text):
        return read
    return pa.Table.from_batches(
        [decoded(batch, moments_as_text) for batch in read.to_batches()], moments_as_text
    )


def refuse_rounded_numbers(block: bytes, read: Any) -> None:
    """Raises ArrowInvalid if a column of floats was read from an integer that no float equals."""
    for name in _large(read):
        refuse_rounded(_integers(block, name), name)


def _large(read: Any) -> set[str]:
    """The columns of floats that may be rounded integers."""
    return {name for batch in read.to_batches() for name in with_large_floats(batch)}


def mended(line: bytes, schema: pa.Schema, read: Callable[[bytes], Any]) -> Any:
    """A broken line as a record batch of one row, with null for what is missing or not of its
    column's type."""
    fields = {
        name: text
        for name, text in _fields(line).items()
        if name in schema.names and _is_read(text, read)
    }
    in_order = [fields[name] for name in schema.names if name in fields]
    return read(b"{" + b", ".join(text[1:-1] for text in in_order) + b"}").to_batches()[0]


def told(line: bytes, why: str) -> str:
    """What Arrow says of a line that is no object, in words of JSON lines."""
    text = line.strip()
    if text.startswith(b"[") and "changed from object to array" in why:
        return (
            "the line is an array, and a line of JSON lines is one object; write each element "
            "of it as a line, as jq -c '.[]' does"
        )
    if text.endswith(b","):
        return "a comma follows the object, and lines of JSON lines have none behind them"
    if text == b"{" or "Missing a name for object member" in why:
        return (
            "the object does not end on its line; write each object as one line, as jq -c '.' does"
        )
    return why


def first_misfit(line: bytes, read: Callable[[bytes], Any]) -> str | None:
    """The first field of a line that alone is refused; None if there is none."""
    return next((name for name, text in _fields(line).items() if not _is_read(text, read)), None)


def _fields(line: bytes) -> dict[str, bytes]:
    """An object for each field of a line; none, if the line is no object."""
    try:
        record = std_json.loads(line)
    except ValueError:
        return {}
    return (
        {name: std_json.dumps({name: value}).encode() for name, value in record.items()}
        if isinstance(record, dict)
        else {}
    )


def _is_read(text: bytes, read: Callable[[bytes], Any]) -> bool:
    try:
        read(text)
    except pa.ArrowException:
        return False
    return True


def _with_bare_floats(block: bytes, schema: pa.Schema) -> bytes:
    """The block without the quotes around ``"NaN"`` and ``"Infinity"`` in columns of floats.
    (Inside a text, the quotes around a name are escaped, so they do not match.)"""
    for name, is_list in set(_names_of(schema, pa.types.is_floating)):
        begins = rb'"' + re.escape(name.encode()) + rb'"\s*:'
        if is_list:
            block = re.sub(
                begins + _LIST_OF_FLOATS,
                lambda found: (
                    found[0][: found.start(1) - found.start()] + found[1].replace(b'"', b"")
                ),
                block,
            )
        else:
            block = re.sub(b"(" + begins + _NAMED_FLOAT, rb"\1\2", block)
    return block


def _with_plain_integers(block: bytes, schema: pa.Schema) -> bytes:
    """The block with 2 in place of 2.0 and 2e0 in fields of integers: an equal number is one,
    however it is written."""
    for name, is_list in set(_names_of(schema, pa.types.is_integer)):
        begins = rb'("' + re.escape(name.encode()) + rb'"\s*:\s*)'
        numbers = rb"(\[[^\]\"{}]*\])" if is_list else rb"(-?\d[-+.\deE]*)"
        block = re.sub(
            begins + numbers,
            lambda found: (
                found[1] + _ANY_NUMBER.sub(lambda number: _plain_integer(number[0]), found[2])
            ),
            block,
        )
    return block


def _plain_integer(number: bytes) -> bytes:
    found = Decimal(number.decode())
    return (
        str(int(found)).encode()
        if found.adjusted() < _MOST_DIGITS and found == found.to_integral_value()
        else number
    )


def _refuse_other_lines(block: bytes, objects: int) -> None:
    """Raises ArrowInvalid if not each line of the block is one of its so many objects: Arrow takes
    several on a line, and one over several lines.

    Inside an object or a list, { does not follow }. So where each line begins with { and ends with
    }, every line ends an object."""
    data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if len(ends) == objects and data[0] == ord("{") and (data[ends[:-1] + 1] == ord("{")).all():
        last = data[ends - 1]
        if ((data[ends - 2] if (last == ord("\r")).all() else last) == ord("}")).all():
            return
    lines = [line for each in re.split(rb"[\r\n]", block) if (line := each.strip())]
    for line in lines:
        if not (line.startswith(b"{") and line.endswith(b"}")):
            raise pa.ArrowInvalid("a line is one JSON object, and this is part of one")
    if len(lines) != objects:
        raise pa.ArrowInvalid("a line is one JSON object, and this is more than one")


def _names_of(fields: Any, is_wanted: Callable[[Any], bool]) -> Iterator[tuple[str, bool]]:
    """The names of fields of such a type, and whether they are lists of it."""
    for field in fields:
        kind, is_list = field.type, False
        while pa.types.is_list(kind):
            kind, is_list = kind.value_type, True
        if is_wanted(kind):
            yield field.name, is_list
        elif pa.types.is_struct(kind):
            yield from _names_of(kind, is_wanted)


def _read(block: bytes, schema: pa.Schema | None, others: str = "error") -> Any:
    if not block or block.isspace():
        return pa.table({}, schema=pa.schema([])) if schema is None else schema.empty_table()
    try:
        if not block.isascii():
            block.decode()
    except UnicodeDecodeError as error:
        raise pa.ArrowInvalid(
            f"{block[error.start : error.start + 20]!r} is no UTF-8, which JSON is written in"
        ) from None
    if _BEGINS_WITH_NULL.match(block):  # Arrow's reader would crash the process
        raise pa.ArrowInvalid("the line is null, and a line of JSON lines is one object in row 0")
    read_options = json.ReadOptions(use_threads=False, block_size=len(block) + 1)
    options = json.ParseOptions(
        explicit_schema=schema, unexpected_field_behavior=others if schema is not None else "infer"
    )
    try:
        return json.read_json(
            pa.BufferReader(block), read_options=read_options, parse_options=options
        )
    except pa.ArrowInvalid as error:
        if schema is None or "unexpected field" not in str(error):
            raise
        found = json.read_json(pa.BufferReader(block), read_options=read_options).schema
        extra = ", ".join(map(repr, _names_beyond(found, schema))) or "inside an object"
        raise pa.ArrowInvalid(
            f"field {extra} is not in the schema ({', '.join(schema.names)})"
        ) from error


def _names_beyond(fields: Any, known: Any, path: str = "") -> Iterator[str]:
    """The names of those fields, also within structs, that are not known."""
    for field in fields:
        at = known.get_field_index(field.name)
        if at < 0:
            yield path + field.name
        elif pa.types.is_struct(field.type) and pa.types.is_struct(known.field(at).type):
            yield from _names_beyond(field.type, known.field(at).type, f"{path}{field.name}.")


def _is_of_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind))


def _casts(column: Any, kind: pa.DataType) -> bool:
    try:
        column.cast(kind)
    except pa.ArrowException:
        return False
    return True
