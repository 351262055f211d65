"""Comparisons, and the logic of three values."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.sql.functions.argument_kinds import ANY, BOOLEAN, COMPARABLE, TEXT
from flinkpy.sql.functions.built_in_function import Shape, Traits, function
from flinkpy.sql.functions.common_arguments import compared
from flinkpy.sql.functions.result_rules import Nulls

_TRUTH = DataTypes.BOOLEAN()
_EQUAL = [Shape((ANY, ANY), together=compared)]
_ORDERED = [Shape((COMPARABLE, COMPARABLE), together=compared)]
_WITHIN = [Shape((COMPARABLE, COMPARABLE, COMPARABLE), together=compared)]
_LISTED = [Shape((ANY, ANY), more=ANY, together=compared)]
_LIKE = [(TEXT, TEXT), (TEXT, TEXT, TEXT)]
_ALL = [Shape((BOOLEAN, BOOLEAN), more=BOOLEAN)]
_PATTERN = Traits(can_fail=True)  # a pattern may be none

COMPARISONS = (
    function("=", "==", _EQUAL, _TRUTH),
    function("<>", "!=", _EQUAL, _TRUTH),
    function(">", ">", _ORDERED, _TRUTH),
    function(">=", ">=", _ORDERED, _TRUTH),
    function("<", "<", _ORDERED, _TRUTH),
    function("<=", "<=", _ORDERED, _TRUTH),
    function("IS NULL", "is_null", [(ANY,)], _TRUTH, Nulls.NEVER),
    function("IS NOT NULL", "is_not_null", [(ANY,)], _TRUTH, Nulls.NEVER),
    function("IS DISTINCT FROM", "", _EQUAL, _TRUTH, Nulls.NEVER),
    function("IS NOT DISTINCT FROM", "", _EQUAL, _TRUTH, Nulls.NEVER),
    function("BETWEEN", "between", _WITHIN, _TRUTH, Nulls.MAYBE),
    function("NOT BETWEEN", "not_between", _WITHIN, _TRUTH, Nulls.MAYBE),
    function("LIKE", "like", _LIKE, _TRUTH, traits=_PATTERN),
    function("NOT LIKE", "", _LIKE, _TRUTH, traits=_PATTERN),
    function("SIMILAR TO", "similar", _LIKE, _TRUTH, traits=_PATTERN),
    function("NOT SIMILAR TO", "", _LIKE, _TRUTH, traits=_PATTERN),
    function("IN", "in_", _LISTED, _TRUTH, Nulls.MAYBE),
    function("NOT IN", "", _LISTED, _TRUTH, Nulls.MAYBE),
)

LOGIC = (
    function("OR", "or_", _ALL, _TRUTH, Nulls.MAYBE),
    function("AND", "and_", _ALL, _TRUTH, Nulls.MAYBE),
    function("NOT", "not_", [(BOOLEAN,)], _TRUTH),
    function("IS FALSE", "is_false", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
    function("IS NOT FALSE", "is_not_false", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
    function("IS TRUE", "is_true", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
    function("IS NOT TRUE", "is_not_true", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
    function("IS UNKNOWN", "", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
    function("IS NOT UNKNOWN", "", [(BOOLEAN,)], _TRUTH, Nulls.NEVER),
)
