"""Keys as bytes, for a database that compares bytes: equal keys give equal bytes, different keys
different ones.

``1``, ``1.0`` and ``True`` are one key of a dict, so they have the same bytes here. A key that
cannot be decoded from its bytes alone (anything but ints, text, bytes, None and tuples of these) is
stored with the value: see ``is_plain``."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import io
import pickle
import struct
import uuid
from dataclasses import fields, is_dataclass
from typing import Any

from flinkpy.common.types import Row
from flinkpy.core.keys import canonical_key, since_midnight
from flinkpy.core.program import code
from flinkpy.core.program.public_names import module_of_definition

_INT64 = struct.Struct(">cq")
_LENGTH = 4  # bytes that say how long what follows is


def encode_key(key: Any) -> bytes:
    """The bytes of a key.

    >>> encode_key("a"), encode_key(1) == encode_key(1.0), encode_key(1) == encode_key("1")
    (b'sa', True, False)
    """
    kind = type(key)
    if kind is str:
        return b"s" + key.encode("utf-8", "surrogatepass")  # type: ignore[no-any-return]
    if kind is int:
        return _encode_int(key)
    if isinstance(key, tuple):
        return b"t" + b"".join([sized(encode_key(item)) for item in key])
    if kind is bytes:
        return b"b" + key  # type: ignore[no-any-return]
    if key is None:
        return b"n"
    return _encode_other(key)


def sized(data: bytes) -> bytes:
    """The data with its length in front."""
    return len(data).to_bytes(_LENGTH, "big") + data


def unsized(data: bytes, start: int = 0) -> tuple[bytes, int]:
    """What ``sized`` wrote at ``start``, and where it ends."""
    end = start + _LENGTH + int.from_bytes(data[start : start + _LENGTH], "big")
    return data[start + _LENGTH : end], end


def is_plain(key: Any) -> bool:
    """Whether ``decode_key`` returns exactly this key."""
    kind = type(key)
    return (
        kind is str
        or kind is int
        or kind is bytes
        or key is None
        or (kind is tuple and all(map(is_plain, key)))
    )


def decode_key(data: bytes) -> Any:
    """The key of ``encode_key``, for plain ones."""
    kind, rest = data[:1], data[1:]
    if kind == b"s":
        return rest.decode("utf-8", "surrogatepass")
    if kind == b"i":
        return int.from_bytes(rest, "big", signed=True)
    if kind == b"b":
        return rest
    if kind == b"n":
        return None
    items, end = [], 0
    while end < len(rest):
        item, end = unsized(rest, end)
        items.append(decode_key(item))
    return tuple(items)


def may_differ_elsewhere(data: bytes) -> bool:
    """Whether the key with these bytes has, or is, a pickle. In another process an equal key may
    have other bytes, so it cannot be found there.

    >>> import array
    >>> (
    ...     may_differ_elsewhere(encode_key(("a", 1.5))),
    ...     may_differ_elsewhere(encode_key(("a", array.array("b")))),
    ... )
    (False, True)
    """
    kind, rest, end = data[:1], data[1:], 0
    if kind in (b"e", b"r", b"c"):
        return may_differ_elsewhere(rest)
    while kind in (b"t", b"f") and end < len(rest):
        item, end = unsized(rest, end)
        if may_differ_elsewhere(item):
            return True
    return kind == b"p"


def _encode_int(key: int) -> bytes:
    try:
        return _INT64.pack(b"i", key)
    except struct.error:
        # nine bytes or more
        return b"i" + key.to_bytes(key.bit_length() // 8 + 1, "big", signed=True)


def _encode_other(key: Any) -> bytes:
    """Numbers are encoded by their value whatever their type, other keys by their parts."""
    key = canonical_key(key)
    if key is None:
        return b"n"
    if isinstance(key, (int, float, decimal.Decimal, fractions.Fraction, complex)):
        return _encode_number(key)
    if isinstance(key, str):
        return b"s" + str.__str__(key).encode("utf-8", "surrogatepass")
    if isinstance(key, bytes):
        return b"b" + bytes(key)
    if isinstance(key, enum.Enum):
        # nameless: several flags, on Python 3.10
        return b"e" + encode_key((*_name_of(type(key)), key.name or key.value))
    if isinstance(key, (datetime.date, datetime.time)):
        return _encode_time(key)
    if isinstance(key, datetime.timedelta):
        return b"D" + _encode_int(key // datetime.timedelta(microseconds=1))
    if isinstance(key, uuid.UUID):
        return b"u" + key.bytes
    if isinstance(key, frozenset):
        return b"f" + b"".join(sorted(sized(encode_key(item)) for item in key))
    if isinstance(key, Row):
        return b"r" + encode_key((key.get_row_kind().name, key._fields, tuple(key)))
    if hasattr(key, "item") and type(key).__module__ == "numpy":
        return (
            b"N" + str(key.dtype).encode() + str(key).encode()
            if key.dtype.kind in "mM"
            else encode_key(key.item())
        )
    if is_dataclass(key) and not isinstance(key, type):
        parts = tuple(getattr(key, field.name) for field in fields(key) if field.compare)
        return b"c" + encode_key((*_name_of(type(key)), parts))
    return b"p" + _pickled(key)


def _name_of(kind: type) -> tuple[str, str]:
    return module_of_definition(kind), kind.__qualname__


def _encode_time(key: datetime.date | datetime.time) -> bytes:
    """Moments with a zone are encoded by what Python compares. A moment never equals a date or a
    time of day."""
    if isinstance(key, datetime.time):
        return (
            b"dtime" + key.isoformat().encode()
            if key.utcoffset() is None
            else b"T" + encode_key(since_midnight(key))
        )
    if not isinstance(key, datetime.datetime):
        return b"ddate" + key.isoformat().encode()
    if key.utcoffset() is None:
        return b"ddatetime" + key.isoformat().encode()
    return b"z" + key.astimezone(datetime.timezone.utc).isoformat().encode()


def _encode_number(key: Any) -> bytes:
    if isinstance(key, complex) and key.imag:
        return b"C" + sized(_encode_number(key.real)) + _encode_number(key.imag)
    key = key.real if isinstance(key, complex) else key
    if key != key or key in (float("inf"), float("-inf")):
        return b"F" + repr(float(key)).encode()
    exact = fractions.Fraction(key)
    if exact.denominator == 1:
        return _encode_int(exact.numerator)
    return b"q" + sized(_encode_int(exact.numerator)) + _encode_int(exact.denominator)


def _pickled(key: object) -> bytes:
    """Pickled without the memo: with it, a key that has the same part twice would differ from one
    that has two equal parts."""
    file = io.BytesIO()
    pickler = pickle.Pickler(file, 5)
    pickler.fast = True
    try:
        pickler.dump(key)
    except (pickle.PicklingError, AttributeError, TypeError):
        return code.dumps_state(key, "a key of state")
    return file.getvalue()
