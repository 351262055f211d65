"""Functions of dates, times and moments."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    DateType,
    LocalZonedTimestampType,
    LogicalType,
    TimeAttribute,
    TimestampType,
)
from flinkpy.sql.functions.argument_kinds import (
    BIGINT,
    DATETIME,
    INTEGER_NUMERIC,
    INTERVAL,
    NUMERIC,
    ROWTIME,
    TEMPORAL,
    TEXT,
    TIMESTAMP,
    Kind,
)
from flinkpy.sql.functions.built_in_function import PLAIN, BuiltInFunction, Traits, function
from flinkpy.sql.functions.result_rules import (
    FittedCall,
    Nulls,
    ResultRule,
    always,
    argument,
    with_unit,
)

_STRING = DataTypes.STRING()
_BIGINT = DataTypes.BIGINT()
_MOMENT = DataTypes.TIMESTAMP_LTZ(3)
_PROCTIME = LocalZonedTimestampType(3, TimeAttribute.PROCTIME)
_NOW = Traits(deterministic=False, dynamic=True)
_EACH_ROW = Traits(deterministic=False)
_READ = [(TEXT,), (TEXT, TEXT)]
_UNITS_OF_DAYS = frozenset(
    ["MILLENNIUM", "CENTURY", "DECADE", "YEAR", "QUARTER", "MONTH", "WEEK", "DAY"]
)


def _now(name: str, python_name: str, type: LogicalType, traits: Traits = _NOW) -> BuiltInFunction:
    return function(name, python_name, [()], type, Nulls.NEVER, traits=traits)


def _field(name: str, *kinds: Kind, traits: Traits = PLAIN) -> BuiltInFunction:
    """A part of a time, as EXTRACT gives it."""
    return function(name, "extract", [kinds], _BIGINT, traits=traits)


def _shifted(call: FittedCall) -> LogicalType | None:
    """The type of the time point; hours make a date a timestamp."""
    unit, point = call.options.get("unit"), argument(1)(call)
    if isinstance(point, DateType) and unit not in _UNITS_OF_DAYS:
        return DataTypes.TIMESTAMP(6)
    return point


TEMPORALS = (
    _now("LOCALTIME", "local_time", DataTypes.TIME(0)),
    _now("LOCALTIMESTAMP", "local_timestamp", DataTypes.TIMESTAMP(3)),
    _now("CURRENT_TIME", "current_time", DataTypes.TIME(0)),
    _now("CURRENT_DATE", "current_date", DataTypes.DATE()),
    _now("CURRENT_TIMESTAMP", "current_timestamp", _MOMENT),
    _now("NOW", "", _MOMENT),
    _now("CURRENT_ROW_TIMESTAMP", "", _MOMENT, _EACH_ROW),
    _now("PROCTIME", "", _PROCTIME, _EACH_ROW),
    function(
        "EXTRACT", "extract", [(TEMPORAL,)], with_unit(always(_BIGINT), "EXTRACT(YEAR FROM time)")
    ),
    _field("YEAR", DATETIME, traits=Traits(monotonic=True)),
    _field("QUARTER", DATETIME),
    _field("MONTH", DATETIME),
    _field("WEEK", DATETIME),
    _field("DAYOFYEAR", DATETIME),
    _field("DAYOFMONTH", DATETIME),
    _field("DAYOFWEEK", DATETIME),
    _field("HOUR", DATETIME),
    _field("MINUTE", DATETIME),
    _field("SECOND", DATETIME),
    function(
        "OVERLAPS",
        "temporal_overlaps",
        [(DATETIME, TEMPORAL, DATETIME, TEMPORAL)],
        DataTypes.BOOLEAN(),
    ),
    function(
        "DATE_FORMAT", "date_format", [(TIMESTAMP, TEXT), (TEXT, TEXT)], _STRING, Nulls.ALWAYS
    ),
    function(
        "TIMESTAMPADD",
        "+",
        [(BIGINT, DATETIME)],
        with_unit(_shifted, "TIMESTAMPADD(DAY, amount, time)"),
    ),
    function(
        "TIMESTAMPDIFF",
        "timestamp_diff",
        [(DATETIME, DATETIME)],
        with_unit(always(DataTypes.INT()), "TIMESTAMPDIFF(DAY, from, until)"),
    ),
    function("CONVERT_TZ", "convert_tz", [(TEXT, TEXT, TEXT)], _STRING, Nulls.ALWAYS),
    function(
        "FROM_UNIXTIME", "from_unixtime", [(NUMERIC,), (NUMERIC, TEXT)], _STRING, Nulls.ALWAYS
    ),
    function("UNIX_TIMESTAMP", "unix_timestamp", [(), *_READ], _BIGINT, traits=_NOW),
    function("TO_DATE", "to_date", _READ, DataTypes.DATE(), Nulls.ALWAYS),
    function(
        "TO_TIMESTAMP_LTZ",
        "to_timestamp_ltz",
        [*_READ, (TEXT, TEXT, TEXT), (NUMERIC,), (NUMERIC, INTEGER_NUMERIC)],
        _MOMENT,
        Nulls.ALWAYS,
    ),
    function("TO_TIMESTAMP", "to_timestamp", _READ, DataTypes.TIMESTAMP(3), Nulls.ALWAYS),
    function(
        "CURRENT_WATERMARK",
        "current_watermark",
        [(ROWTIME,)],
        argument(0),
        Nulls.ALWAYS,
        traits=_EACH_ROW,
    ),
    function("SOURCE_WATERMARK", "", [()], _MOMENT, Nulls.ALWAYS),
)

# -- what GROUP BY TUMBLE(...) says of its window --------------------------------------------------

_TUMBLE = (DATETIME, INTERVAL)
_HOP = (DATETIME, INTERVAL, INTERVAL)
_WINDOWS = {"TUMBLE": _TUMBLE, "HOP": _HOP, "SESSION": _TUMBLE}


def _rowtime(call: FittedCall) -> LogicalType:
    """The end of the window as a time attribute again."""
    type = call.arguments[0]
    made = LocalZonedTimestampType if isinstance(type, LocalZonedTimestampType) else TimestampType
    return made(3, TimeAttribute.ROWTIME)


def _of_window(ending: str, rule: ResultRule | LogicalType, nulls: Nulls) -> list[BuiltInFunction]:
    python_name = ending.lower()
    return [
        function(f"{window}_{ending}", python_name, [kinds], rule, nulls)
        for window, kinds in _WINDOWS.items()
    ]


GROUP_WINDOWS = (
    *_of_window("START", DataTypes.TIMESTAMP(3), Nulls.NEVER),
    *_of_window("END", DataTypes.TIMESTAMP(3), Nulls.NEVER),
    *_of_window("ROWTIME", _rowtime, Nulls.ALWAYS),
    *_of_window("PROCTIME", _PROCTIME, Nulls.NEVER),
)
