"""Choices between values, and conversions. Those with a syntax of their own are called so: CASE
takes (condition, value, ..., otherwise), the casts take their type as the option ``type``."""

from __future__ import annotations

from flinkpy.common.logical_types.allowed_casts import explicit_cast_allowed
from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import LogicalType, TypeFamily
from flinkpy.common.logical_types.type_merging import common_argument_type, common_type
from flinkpy.sql.functions.argument_kinds import ANY, BOOLEAN, COMPARABLE
from flinkpy.sql.functions.built_in_function import Shape, Traits, function
from flinkpy.sql.functions.common_arguments import branches, comparable, in_common
from flinkpy.sql.functions.result_rules import FittedCall, Nulls, argument, common
from flinkpy.sql.sql_errors import ValidationError

_ALL_IN_COMMON = [Shape((ANY,), more=ANY, together=in_common())]
_CAST = Traits(can_fail=True, monotonic=True)


def _first_that_is(call: FittedCall) -> LogicalType | None:
    """The common type; NOT NULL if one argument is."""
    type = common_argument_type(call.arguments)
    return (
        None
        if type is None
        else type.with_nullable(all(each.is_nullable for each in call.arguments))
    )


def _chosen(call: FittedCall) -> LogicalType | None:
    """The common type of the values of CASE."""
    return common_type([*call.arguments[1::2], call.arguments[-1]])


def _target(call: FittedCall) -> LogicalType | None:
    """The type that the option names, if the cast is allowed."""
    type = call.options["type"]
    assert isinstance(type, LogicalType)
    given = call.given[0]
    if explicit_cast_allowed(given, type):
        return type
    way_out = ""
    if given.is_a(TypeFamily.NUMERIC) and type.is_a(TypeFamily.TIMESTAMP):
        way_out = "; TO_TIMESTAMP_LTZ(number, 3) makes a moment of milliseconds"
    raise ValidationError(f"{given.nullable()} cannot be cast to {type.nullable()}{way_out}")


CONDITIONALS = (
    function(
        "CASE",
        "then",
        [Shape((BOOLEAN, ANY, ANY), more=ANY, together=branches)],
        _chosen,
        Nulls.OWN,
    ),
    function("NULLIF", "", [Shape((ANY, ANY), together=comparable)], argument(0), Nulls.ALWAYS),
    function("COALESCE", "coalesce", _ALL_IN_COMMON, _first_that_is, Nulls.OWN),
    function(
        "IF",
        "if_then_else",
        [Shape((BOOLEAN, ANY, ANY), together=in_common(1, 2))],
        common(1),
        Nulls.MAYBE,
    ),
    function(
        "IFNULL", "if_null", [Shape((ANY, ANY), together=in_common())], _first_that_is, Nulls.OWN
    ),
    function(
        "GREATEST", "", [Shape((COMPARABLE,), more=COMPARABLE, together=in_common())], common()
    ),
    function("LEAST", "", [Shape((COMPARABLE,), more=COMPARABLE, together=in_common())], common()),
)

CONVERSIONS = (
    function("CAST", "cast", [(ANY,)], _target, traits=_CAST),
    function("TRY_CAST", "try_cast", [(ANY,)], _target, Nulls.ALWAYS),
    function("TYPEOF", "", [(ANY,), (ANY, BOOLEAN.constant())], DataTypes.STRING(), Nulls.ALWAYS),
    function(
        "CURRENT_DATABASE",
        "current_database",
        [()],
        DataTypes.STRING(),
        Nulls.NEVER,
        traits=Traits(deterministic=False),
    ),
)
