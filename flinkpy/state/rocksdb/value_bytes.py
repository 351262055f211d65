"""Values as bytes. The bytes do not outlive the process, so the format only has to be small and
fast to write.

Common types have formats of their own, chosen by the value's type and not by the declared one: a
number is eight bytes, text is its characters. Everything else is pickled; a class that cannot be
imported is pickled as a name, as it stays in the process. The first byte names the format."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable
from typing import Any

from flinkpy.core.program import code
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.state.state_isolation import reveal

_INT, _FLOAT = struct.Struct("<Bq"), struct.Struct("<Bd")
_PICKLE, _IS_INT, _IS_FLOAT, _TEXT, _BYTES, _NONE, _TRUE, _FALSE = range(8)
_PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)
_INT64 = 1 << 63


def _encode_int(value: int) -> bytes:
    return (
        _INT.pack(_IS_INT, value) if -_INT64 <= value < _INT64 else b"\0" + pickle.dumps(value, 5)
    )


def pickled(value: object, what: str, by_value: StreamPickler) -> bytes:
    """Pickled in the first way that works."""
    try:
        return pickle.dumps(value, 5)
    except _PICKLE_TROUBLE:
        pass
    try:
        return by_value.dumps(value)
    except _PICKLE_TROUBLE:
        return code.dumps_state(value, what)


_ENCODERS: dict[type, Callable[[Any], bytes]] = {
    int: _encode_int,
    float: lambda value: _FLOAT.pack(_IS_FLOAT, value),
    str: lambda value: b"\3" + value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: b"\4" + value,
    type(None): lambda value: b"\5",
    bool: lambda value: b"\6" if value else b"\7",
}
_DECODERS: dict[int, Callable[[bytes], Any]] = {
    _PICKLE: lambda data: pickle.loads(memoryview(data)[1:]),
    _IS_INT: lambda data: _INT.unpack(data)[1],
    _IS_FLOAT: lambda data: _FLOAT.unpack(data)[1],
    _TEXT: lambda data: data[1:].decode("utf-8", "surrogatepass"),
    _BYTES: lambda data: data[1:],
    _NONE: lambda data: None,
    _TRUE: lambda data: True,
    _FALSE: lambda data: False,
}


def encode_value(value: object, by_value: StreamPickler, what: str = "a value of state") -> bytes:
    """The bytes of a value, taken out of its protection where it has one. ``by_value``
    (``only_here``) is to be kept as long as the bytes are. Raises ProgramError that names ``what``
    cannot be pickled.

    >>> own = StreamPickler(only_here=True)
    >>> (
    ...     decode_value(encode_value(3, own)),
    ...     len(encode_value(3, own)),
    ...     decode_value(encode_value([None, "a"], own)),
    ... )
    (3, 9, [None, 'a'])
    """
    value = reveal(value)
    encoder = _ENCODERS.get(type(value))
    return encoder(value) if encoder is not None else b"\0" + pickled(value, what, by_value)


def decode_value(data: bytes) -> Any:
    """The value: a new object each time, if it can be changed."""
    return _DECODERS[data[0]](data)
