"""A failure in the bytes in which Flink's clients expect it: Java's serialization of an
``org.apache.flink.util.SerializedThrowable``.

The format is that of the Java Object Serialization Specification. The classes are named with the
fields that are given; Java leaves the others empty."""

from __future__ import annotations

import struct
from base64 import b64encode

from flinkpy.core.secrets.hidden_secrets import without_secrets

_STREAM = b"\xac\xed\x00\x05"
_OBJECT, _CLASS, _STRING, _LONG_STRING, _END, _NULL = b"s", b"r", b"t", b"|", b"x", b"p"
_SERIALIZABLE, _HAS_WRITE_METHOD = 2, 1
_VERSIONS = {  # the serialVersionUID of each class
    "org.apache.flink.util.SerializedThrowable": 7284183123441947635,
    "java.lang.Exception": -3387516993124229948,
    "java.lang.Throwable": -3042686055658047285,
}


def failure_cause(error_class: str, message: str) -> dict[str, str]:
    """What people read, and what Flink's clients do: they take the exception from its serialized
    form alone."""
    message = without_secrets(message)  # the serialized form hides nothing later
    return {
        "class": error_class,
        "stack-trace": f"{error_class}: {message}",
        "serialized-throwable": b64encode(serialized_throwable(error_class, message)).decode(),
    }


def serialized_throwable(error_class: str, message: str) -> bytes:
    """The names of its class and its message; they are all of its stack trace.

    >>> serialized_throwable("SavepointError", "no room")[:4].hex()
    'aced0005'
    """
    description = (
        _class(
            "org.apache.flink.util.SerializedThrowable",
            _SERIALIZABLE,
            "fullStringifiedStackTrace",
            "originalErrorClassName",
        )
        + _class("java.lang.Exception", _SERIALIZABLE)
        + _class("java.lang.Throwable", _SERIALIZABLE | _HAS_WRITE_METHOD, "detailMessage")
        + _NULL
    )
    of_throwable = _string(message) + _END  # what a class writes itself has an end of its own
    return (
        _STREAM
        + _OBJECT
        + description
        + of_throwable
        + _string(f"{error_class}: {message}\n")
        + _string(error_class)
    )


def _class(name: str, flags: int, *fields: str) -> bytes:
    """A class whose ``fields`` are strings, in the order of their names; that of its parent class
    follows."""
    declared = b"".join(
        b"L" + _short_text(field) + _string("Ljava/lang/String;") for field in fields
    )
    return (
        _CLASS
        + _short_text(name)
        + struct.pack(">qBH", _VERSIONS[name], flags, len(fields))
        + declared
        + _END
    )


def _string(text: str) -> bytes:
    data = _modified_utf8(text)
    return (
        _STRING + struct.pack(">H", len(data)) + data
        if len(data) < 1 << 16
        else _LONG_STRING + struct.pack(">Q", len(data)) + data
    )


def _short_text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


def _modified_utf8(text: str) -> bytes:
    """Java's: each half of a pair of surrogates by itself, and 0 in two bytes."""
    halves = text.encode("utf-16-be", "surrogatepass")
    units = struct.unpack(f">{len(halves) // 2}H", halves)
    return "".join(map(chr, units)).encode("utf-8", "surrogatepass").replace(b"\0", b"\xc0\x80")
