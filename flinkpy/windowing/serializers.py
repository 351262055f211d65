"""Serializers of windows: fixed size and big-endian, so windows keep their order as bytes."""

from __future__ import annotations

import struct
from typing import BinaryIO

from flinkpy.common.serializer import TypeSerializer
from flinkpy.windowing.windows import CountWindow, GlobalWindow, TimeWindow

_INTERVAL, _NUMBER = struct.Struct(">qq"), struct.Struct(">q")


class TimeWindowSerializer(TypeSerializer[TimeWindow]):
    """Sixteen bytes: start and end.

    >>> import io
    >>> written = io.BytesIO()
    >>> TimeWindowSerializer().serialize(TimeWindow(0, 10), written)
    >>> TimeWindowSerializer().deserialize(io.BytesIO(written.getvalue()))
    TimeWindow(start=0, end=10)
    """

    def serialize(self, element: TimeWindow, stream: BinaryIO) -> None:
        stream.write(_INTERVAL.pack(*element))

    def deserialize(self, stream: BinaryIO) -> TimeWindow:
        return TimeWindow(*_INTERVAL.unpack(stream.read(_INTERVAL.size)))


class CountWindowSerializer(TypeSerializer[CountWindow]):
    """Eight bytes: the number.

    >>> import io
    >>> written = io.BytesIO()
    >>> CountWindowSerializer().serialize(CountWindow(7), written)
    >>> CountWindowSerializer().deserialize(io.BytesIO(written.getvalue())).id
    7
    """

    def serialize(self, element: CountWindow, stream: BinaryIO) -> None:
        stream.write(_NUMBER.pack(element.id))

    def deserialize(self, stream: BinaryIO) -> CountWindow:
        return CountWindow(*_NUMBER.unpack(stream.read(_NUMBER.size)))


class GlobalWindowSerializer(TypeSerializer[GlobalWindow]):
    """One byte, as in Flink, because an empty key would be no key.

    >>> import io
    >>> written = io.BytesIO()
    >>> GlobalWindowSerializer().serialize(GlobalWindow.get(), written)
    >>> GlobalWindowSerializer().deserialize(io.BytesIO(written.getvalue()))
    GlobalWindow
    """

    def serialize(self, element: GlobalWindow, stream: BinaryIO) -> None:
        stream.write(b"\0")

    def deserialize(self, stream: BinaryIO) -> GlobalWindow:
        stream.read(1)
        return GlobalWindow.get()
