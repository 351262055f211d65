"""JSON in text. What SQL says in words is an option of the call: ``returning`` (a type),
``on_empty``, ``on_error``, ``on_null``, ``wrapper``."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.sql.functions.argument_kinds import ANY, TEXT
from flinkpy.sql.functions.built_in_function import Shape, Traits, Types, function
from flinkpy.sql.functions.result_rules import Nulls, option

_STRING = DataTypes.STRING()
_PATH = [(TEXT, TEXT.constant())]
_ON_ERROR = Traits(can_fail=True)


def _pairs(types: Types) -> Types | None:
    """Names and values in turn."""
    names = types[::2]
    is_named = all(TEXT.fit(each) is not None for each in names)
    return types if is_named and len(types) % 2 == 0 else None


JSON = (
    function("IS JSON", "is_json", [(TEXT,)], DataTypes.BOOLEAN(), Nulls.NEVER),
    function("IS NOT JSON", "", [(TEXT,)], DataTypes.BOOLEAN(), Nulls.NEVER),
    function(
        "JSON_EXISTS", "json_exists", _PATH, DataTypes.BOOLEAN(), Nulls.ALWAYS, traits=_ON_ERROR
    ),
    function("JSON_STRING", "json_string", [(ANY,)], _STRING),
    function(
        "JSON_VALUE",
        "json_value",
        _PATH,
        option("returning", _STRING),
        Nulls.ALWAYS,
        traits=_ON_ERROR,
    ),
    function(
        "JSON_QUERY",
        "json_query",
        _PATH,
        option("returning", _STRING),
        Nulls.ALWAYS,
        traits=_ON_ERROR,
    ),
    function(
        "JSON_OBJECT",
        "json_object",
        [(), Shape((TEXT.constant(), ANY), more=ANY, together=_pairs)],
        _STRING,
        Nulls.NEVER,
    ),
    function("JSON_ARRAY", "json_array", [(), Shape((ANY,), more=ANY)], _STRING, Nulls.NEVER),
    function("JSON", "json", [(TEXT,)], _STRING, traits=_ON_ERROR),
)
