"""What windowed streams offer over columns: built-in aggregates by Arrow kernels.

That is where windows lie on a grid and nothing but lateness was said of them; all else is left to rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.event_time import event_time_zone

if TYPE_CHECKING:
    from flinkpy.datastream.data_stream import DataStream
    from flinkpy.datastream.windowed.windowed_stream import Windowed
    from flinkpy.windowing.slices.slicing import Slicing


def are_aggregates(arguments: tuple[Any, ...]) -> bool:
    """Whether ``aggregate`` was given expressions."""
    from flinkpy.columns.expression import Expression

    return any(isinstance(each, Expression) for each in arguments)


def aggregate_columns(windowed: Windowed, aggregates: tuple[Any, ...]) -> DataStream:
    """For each window and key the key's columns, the aggregates, and the window's begin and end, in the zone of the event time where it has one."""
    from flinkpy.columns.expressions import aggregate_calls
    from flinkpy.windowing.slices.columnar_operator import WindowAggregatesOperator

    slicing = _slicing(windowed)
    if slicing is None:
        raise refuse(f"aggregate() over columns works on tumbling and sliding windows with their default trigger and without an evictor, "
                     f"not on {windowed!r}")
    stream = windowed._stream._as_columns("aggregate()")
    keys = _keys(windowed, "aggregate()")
    with located():
        calls = aggregate_calls(aggregates, "aggregate()")
        event_time = windowed._assigner.is_event_time()
        zone = event_time_zone(stream._transformation) if event_time else None
        operator = WindowAggregatesOperator(keys, slicing, event_time, calls, windowed._lateness, windowed._late_tag, zone)
    return _applied(windowed, stream, operator, ", ".join(call.name for call in calls))


def count_columns(windowed: Windowed) -> DataStream | None:
    """How many records a window has, as a column ``count`` beside the key's; None where that is left to rows."""
    from flinkpy.columns.expressions import lit

    if not _can(windowed):
        return None
    return aggregate_columns(windowed, (lit(1).count.alias("count"),))


def field_columns(windowed: Windowed, kind: str, position: Any) -> DataStream | None:
    """``sum``, ``min`` or ``max`` of a column; None where that is left to rows."""
    from flinkpy.windowing.slices.columnar_operator import WindowFieldOperator

    slicing = _slicing(windowed)
    if slicing is None or kind not in ("sum", "min", "max") or not _can(windowed):
        return None
    with located():
        operator = WindowFieldOperator(_keys(windowed, f"{kind}()"), slicing, windowed._assigner.is_event_time(), kind, position, windowed._lateness,
                                       windowed._late_tag)
    return _applied(windowed, windowed._stream, operator, kind)


def _can(windowed: Windowed) -> bool:
    key = windowed._key
    return windowed._stream.is_columnar and _slicing(windowed) is not None and (key is None or key.columns is not None)


def _slicing(windowed: Windowed) -> Slicing | None:
    from flinkpy.windowing.general.grid_loop import default_slicing

    if windowed._evictor is not None:
        return None
    return default_slicing(windowed._assigner, windowed._trigger or windowed._assigner.get_default_trigger())


def _keys(windowed: Windowed, call: str) -> tuple[str, ...]:
    stream: Any = windowed._stream
    keys: tuple[str, ...] = () if windowed._key is None else stream._columnar_keys(call)
    return keys


def _applied(windowed: Windowed, stream: DataStream, operator: Any, what: str) -> DataStream:
    result = stream._apply(type(windowed._assigner).__name__, operator, None, key=windowed._key, columnar=True)
    result.set_description(f"Window({windowed._assigner}, {what})")
    if windowed._key is not None:
        return result
    from flinkpy.datastream.streams.non_parallel import NonParallelStream

    return NonParallelStream(result._env, result._transformation, columnar=True, schema=result._schema, helpers=result._helpers)
