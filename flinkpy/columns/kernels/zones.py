"""Zones of timestamps: local times, and the instants of local times.

Arrow computes both fast. What it cannot compute goes through Python value by value: daylight saving
time after 2037, and local times that a clock skips."""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from flinkpy.columns.kernels.operand_types import INT, Kernel, Types
from flinkpy.columns.row_functions.moment_functions import placed as placed_one

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_END_OF_2037_S = 2_145_916_800  # Arrow knows no daylight saving time after this


def zone_of(name: str) -> datetime.tzinfo:
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, zoneinfo.ZoneInfoNotFoundError):  # an offset from UTC such as +02:00
        found: datetime.tzinfo = pa.lib.string_to_tzinfo(name)
        return found


def local_times(values: pa.Array | pa.Scalar) -> Any:
    """The local time in the zone of each timestamp; what has no zone stays as it is."""
    if getattr(values.type, "tz", None) is None:
        return values
    if _is_before_2038(values):
        return pc.local_timestamp(values)
    zone = zone_of(values.type.tz)
    shown = [
        None if value is None else value.astimezone(zone).replace(tzinfo=None)
        for value in values.to_pylist()
    ]
    return pa.array(shown, pa.timestamp(values.type.unit))


def _is_before_2038(values: pa.Array | pa.Scalar) -> bool:
    latest = pc.max(values.view(INT)).as_py()
    return latest is None or latest < _END_OF_2037_S * _PER_SECOND[values.type.unit]


def placed(local: Any, zone: str, unit: str) -> Any:
    """The instants of local times. A time that the clock shows twice is the earlier one; one that
    it skips is as much later as the clock is put forward."""
    if _is_before_2038(local):
        try:
            return pc.assume_timezone(local, zone, ambiguous="earliest").cast(
                pa.timestamp(unit, zone)
            )
        except pa.ArrowInvalid:
            pass
    found = zone_of(zone)
    return pa.array(
        [None if value is None else placed_one(value, found) for value in local.to_pylist()],
        pa.timestamp(unit, zone),
    )


def convert_time_zone(types: Types, zone: str) -> Kernel:
    kind = types[0]
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise TypeError(
            "it needs a timestamp with a zone; a local time becomes one with "
            f"replace_time_zone({zone!r})"
        )
    wanted = pa.timestamp(kind.unit, zone)
    return lambda values: values.cast(wanted)


def replace_time_zone(types: Types, zone: str | None) -> Kernel:
    kind = types[0]
    if not pa.types.is_timestamp(kind):
        raise TypeError("it needs a timestamp")
    return (
        local_times if zone is None else lambda values: placed(local_times(values), zone, kind.unit)
    )
