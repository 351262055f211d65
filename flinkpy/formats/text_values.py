"""Records for text formats: their fields, and their values as JSON and as text.

Both formats write values as Flink and Spark do: bytes as Base64, decimals with all digits and
without an exponent, datetimes with the offset of their zone. JSON has no NaN and no infinities;
they become the texts ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``. Sets are refused, because they
have no order."""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from decimal import Decimal
from typing import Any

import numpy as np

from flinkpy.common.time import Instant
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError

_MINUTE = datetime.timedelta(minutes=1)
# without parts; a fast check
_SINGLE = {bytes, Decimal, datetime.date, datetime.time, datetime.datetime}


def plain(value: object) -> Any:
    """Dataclasses, named tuples and named rows as dicts; other values unchanged."""
    if type(value) is dict:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "as_dict") and getattr(value, "_fields", None):
        return value.as_dict()
    return value._asdict() if isinstance(value, tuple) and hasattr(value, "_asdict") else value


def fields_of(value: object) -> Sequence[Any]:
    """The values of a record's fields; a value that is no record is its own only field."""
    fields = plain(value)
    if isinstance(fields, dict):
        return list(fields.values())
    if isinstance(fields, (str, bytes)) or not hasattr(fields, "__iter__"):
        return [fields]
    return list(fields)


def json_text(record: object) -> str:
    """The record as JSON on one line. Raises ProgramError, with the field's name, for a value that
    JSON cannot hold.

    >>> json_text({"at": datetime.datetime(2024, 5, 1, 12), "raw": b"abc", "rate": math.nan})
    '{"at": "2024-05-01 12:00:00", "raw": "YWJj", "rate": "NaN"}'
    """
    try:
        return json_value(plain(record))
    except (TypeError, ValueError) as error:
        raise ProgramError(f"{_culprit(record)} cannot be written as JSON: {error}") from error


def json_value(value: object) -> str:
    """A value's JSON, as it stands in a record. Raises TypeError or ValueError for a value that
    JSON cannot hold."""
    try:
        return _ENCODER.encode(value)
    except ValueError as error:
        if "JSON compliant" not in str(error):
            raise
        return json.dumps(
            _with_named_floats(value),
            default=lambda each: _with_named_floats(_known(each)),
            ensure_ascii=False,
        )


def _with_named_floats(value: object) -> Any:
    value = plain(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {key: _with_named_floats(each) for key, each in value.items()}
    return list(map(_with_named_floats, value)) if isinstance(value, (list, tuple)) else value


def _culprit(record: object) -> str:
    named = plain(record)
    fields = named.items() if isinstance(named, dict) else enumerate(fields_of(named))
    for name, value in fields:
        try:
            json_value(value)
        except (TypeError, ValueError):
            return f"field {name!r} of {record!r:.100}"
    return f"{record!r:.100}"


def _known(value: object) -> Any:
    """A value that ``json`` does not know, in terms of values it knows."""
    if type(value) in _SINGLE:
        return single_text(value)
    named = plain(value)
    if named is not value:
        return named
    if isinstance(value, Row):
        return list(value)
    if isinstance(value, np.timedelta64):  # a subclass of numpy's integers
        return str(value)
    if isinstance(value, (np.bool_, np.number)):
        return value.item()
    return value.tolist() if isinstance(value, np.ndarray) else single_text(value)


def single_text(value: object) -> str:
    """The text of a value without parts that JSON does not have. Raises TypeError for an object
    without a text form."""
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime.datetime):
        offset = value.utcoffset()
        # Readers do not accept offsets with seconds, so those become UTC.
        return str(
            value.astimezone(datetime.timezone.utc)
            if offset is not None and offset % _MINUTE
            else value
        )
    if isinstance(value, Instant):
        second = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=value.seconds)
        return f"{second}.{value.nanos:09}+00:00"
    if getattr(type(value), "__str__", None) is object.__str__:
        what = (
            "a set has no order: give sorted(...)"
            if isinstance(value, (set, frozenset))
            else "it has no text: give a value of Python's own types"
        )
        raise TypeError(f"{value!r:.60} is a {type(value).__name__}, {what}")
    return str(value)


_ENCODER = json.JSONEncoder(default=_known, ensure_ascii=False, allow_nan=False)


def cell_text(value: object) -> str | None:
    """The value as a field of a CSV file: nested values as JSON, None as None.

    >>> cell_text([1, {"a": None}]), cell_text(Decimal("1E-10")), cell_text(None)
    ('[1, {"a": null}]', '0.0000000001', None)
    """
    if value is None or isinstance(value, str):
        return value
    if type(value) in _SINGLE:
        return single_text(value)
    if isinstance(value, (Mapping, list, tuple, Row, np.ndarray)) or is_dataclass(value):
        return json_text(value)
    known = value if isinstance(value, (int, float)) else _known(value)
    return repr(float(known)) if isinstance(known, float) else str(known)
