"""Aggregates, and the functions of ranks, which stand before OVER only. The planner makes a result
nullable where a group may have no row."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import ArrayType, LogicalType, MultisetType
from flinkpy.common.logical_types.type_merging import common_type
from flinkpy.sql.functions.argument_kinds import (
    ANY,
    BITMAP,
    COMPARABLE,
    INT,
    INTEGER_NUMERIC,
    NUMERIC,
    TEXT,
    Kind,
    array_of,
    cast_to,
)
from flinkpy.sql.functions.built_in_function import BuiltInFunction, Shape, function
from flinkpy.sql.functions.common_arguments import in_common
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.result_rules import (
    FittedCall,
    Nulls,
    ResultRule,
    argument,
    averaged,
    summed,
)

_BIGINT = DataTypes.BIGINT()
_DOUBLE = DataTypes.DOUBLE()
_BITMAP = DataTypes.BITMAP()
_AGGREGATE = FunctionKind.AGGREGATE
_WINDOW = FunctionKind.WINDOW
_PERCENTAGE = cast_to(NUMERIC, _DOUBLE)


def _aggregate(
    name: str,
    python_name: str,
    shapes: list[Shape],
    result: ResultRule | LogicalType,
    nulls: Nulls = Nulls.MAYBE,
) -> BuiltInFunction:
    return function(name, python_name, shapes, result, nulls, kind=_AGGREGATE)


def _of_number(name: str, python_name: str, result: ResultRule) -> BuiltInFunction:
    return _aggregate(name, python_name, [Shape((NUMERIC,))], result)


def _of_any(
    name: str, python_name: str, result: ResultRule, nulls: Nulls = Nulls.MAYBE
) -> BuiltInFunction:
    return _aggregate(name, python_name, [Shape((ANY,))], result, nulls)


def _of_bitmaps(name: str, kind: Kind, result: LogicalType) -> BuiltInFunction:
    return _aggregate(name, name.lower(), [Shape((kind,))], result, Nulls.ALWAYS)


def _rank(name: str, type: LogicalType, *shapes: Shape) -> BuiltInFunction:
    return function(name, "", shapes or (Shape(),), type, Nulls.NEVER, kind=_WINDOW)


def _neighbour(call: FittedCall) -> LogicalType | None:
    """The argument's type. Null if there may be no such row, or if the value there may be null.
    (Flink's type is NOT NULL once the default is, though the value may be null.)"""
    if len(call.arguments) < 3:
        return call.arguments[0].nullable()
    return common_type([call.arguments[0], call.arguments[2]])


_NEIGHBOUR = [
    Shape((ANY,)),
    Shape((ANY, NUMERIC)),
    Shape((ANY, NUMERIC, ANY), together=in_common(0, 2)),
]
_SHARES = array_of(_PERCENTAGE)
_PERCENTILE = [
    Shape((NUMERIC, _PERCENTAGE)),
    Shape((NUMERIC, _PERCENTAGE, INTEGER_NUMERIC)),
    Shape((NUMERIC, _SHARES), result=lambda call: ArrayType(_DOUBLE)),
    Shape((NUMERIC, _SHARES, INTEGER_NUMERIC), result=lambda call: ArrayType(_DOUBLE)),
]

AGGREGATES = (
    _aggregate("COUNT", "count", [Shape(), Shape((ANY,), more=ANY)], _BIGINT, Nulls.NEVER),
    _of_number("AVG", "avg", averaged),
    _of_number("SUM", "sum", summed),
    _aggregate("$SUM0", "sum0", [Shape((NUMERIC,))], summed, Nulls.NEVER),
    _aggregate("MAX", "max", [Shape((COMPARABLE,))], argument(0)),
    _aggregate("MIN", "min", [Shape((COMPARABLE,))], argument(0)),
    _of_number("STDDEV_POP", "stddev_pop", averaged),
    _of_number("STDDEV_SAMP", "stddev_samp", averaged),
    _of_number("VAR_POP", "var_pop", averaged),
    _of_number("VAR_SAMP", "var_samp", averaged),
    _of_any("COLLECT", "collect", lambda call: MultisetType(call.arguments[0]), Nulls.NEVER),
    _of_any("FIRST_VALUE", "first_value", argument(0)),
    _of_any("LAST_VALUE", "last_value", argument(0)),
    _aggregate(
        "LISTAGG", "list_agg", [Shape((TEXT,)), Shape((TEXT, TEXT.constant()))], DataTypes.STRING()
    ),
    _of_any("ARRAY_AGG", "array_agg", lambda call: ArrayType(call.arguments[0])),
    _aggregate(
        "JSON_OBJECTAGG",
        "json_object_agg",
        [Shape((TEXT, ANY))],
        DataTypes.VARCHAR(2000),
        Nulls.NEVER,
    ),
    _aggregate(
        "JSON_ARRAYAGG", "json_array_agg", [Shape((ANY,))], DataTypes.VARCHAR(2000), Nulls.NEVER
    ),
    _aggregate("PERCENTILE", "percentile", _PERCENTILE, _DOUBLE, Nulls.ALWAYS),
    _of_bitmaps("BITMAP_BUILD_AGG", INT, _BITMAP),
    _of_bitmaps("BITMAP_BUILD_CARDINALITY_AGG", INT, _BIGINT),
    _of_bitmaps("BITMAP_AND_AGG", BITMAP, _BITMAP),
    _of_bitmaps("BITMAP_AND_CARDINALITY_AGG", BITMAP, _BIGINT),
    _of_bitmaps("BITMAP_OR_AGG", BITMAP, _BITMAP),
    _of_bitmaps("BITMAP_OR_CARDINALITY_AGG", BITMAP, _BIGINT),
    _of_bitmaps("BITMAP_XOR_AGG", BITMAP, _BITMAP),
    _of_bitmaps("BITMAP_XOR_CARDINALITY_AGG", BITMAP, _BIGINT),
    _aggregate("APPROX_COUNT_DISTINCT", "", [Shape((ANY,))], _BIGINT, Nulls.NEVER),
    _of_any("SINGLE_VALUE", "", argument(0)),
    _aggregate("GROUP_ID", "", [Shape()], _BIGINT, Nulls.NEVER),
    _aggregate("GROUPING", "", [Shape((ANY,), more=ANY)], _BIGINT, Nulls.NEVER),
    _aggregate("GROUPING_ID", "", [Shape((ANY,), more=ANY)], _BIGINT, Nulls.NEVER),
)

RANKS = (
    _rank("RANK", _BIGINT),
    _rank("DENSE_RANK", _BIGINT),
    _rank("ROW_NUMBER", _BIGINT),
    _rank("CUME_DIST", _DOUBLE),
    _rank("PERCENT_RANK", _DOUBLE),
    _rank("NTILE", _BIGINT, Shape((INTEGER_NUMERIC.constant(),))),
    function("LEAD", "lead", _NEIGHBOUR, _neighbour, Nulls.OWN, kind=_WINDOW),
    function("LAG", "lag", _NEIGHBOUR, _neighbour, Nulls.OWN, kind=_WINDOW),
)
