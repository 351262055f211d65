"""Arrays, maps and rows: how they are made, and what is made of them. ``array[1]`` and
``map['key']`` are calls of ITEM; ``row.name`` is FIELD with the option ``index``."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.common.logical_types.logical_type import (
    ArrayType,
    LogicalType,
    MapType,
    RowField,
    RowType,
)
from flinkpy.common.logical_types.type_merging import common_argument_type
from flinkpy.sql.functions.argument_kinds import (
    ANY,
    ARRAY,
    BOOLEAN,
    COLLECTION,
    COMPARABLE,
    INT,
    MAP,
    ROW,
    STRING,
    TEXT,
    array_of,
)
from flinkpy.sql.functions.built_in_function import BuiltInFunction, Shape, Traits, Types, function
from flinkpy.sql.functions.common_arguments import alternating, in_common, with_element
from flinkpy.sql.functions.result_rules import (
    FittedCall,
    Nulls,
    ResultRule,
    always,
    argument,
    common,
    element,
)

_STRING = DataTypes.STRING()
_INT = DataTypes.INT()
_ONE_OF_ITS = [Shape((ARRAY, ANY), together=with_element)]
_ARRAYS = [Shape((ARRAY, ARRAY), together=in_common())]
_SORTED = array_of(COMPARABLE)
_FAILS = Traits(can_fail=True)


def _keyed(types: Types) -> Types | None:
    """A map and a key, which becomes of the map's key type."""
    map, key = types
    if not isinstance(map, MapType) or common_argument_type([map.key, key]) is None:
        return None
    return map, map.key.with_nullable(key.is_nullable)


def _row(call: FittedCall) -> LogicalType:
    return RowType(tuple(RowField(f"EXPR${at}", each) for at, each in enumerate(call.arguments)))


def _array(call: FittedCall) -> LogicalType | None:
    element = common_argument_type(call.arguments)
    return None if element is None else ArrayType(element)


def _map(call: FittedCall) -> LogicalType | None:
    key, value = (
        common_argument_type(call.arguments[::2]),
        common_argument_type(call.arguments[1::2]),
    )
    return None if key is None or value is None else MapType(key, value)


def _field(call: FittedCall) -> LogicalType | None:
    """The part of the row that the option says; null if the row is."""
    row, index = call.arguments[0], call.options.get("index")
    if not isinstance(row, RowType) or not isinstance(index, int):
        return None
    type = row.fields[index].type
    return type.with_nullable(type.is_nullable or row.is_nullable)


def _unless_no_array(rule: ResultRule) -> ResultRule:
    """What the rule gives, null if the array is; the value may be null."""

    def of_array(call: FittedCall) -> LogicalType | None:
        found = rule(call)
        return None if found is None else found.with_nullable(call.given[0].is_nullable)

    return of_array


def _kept(call: FittedCall) -> LogicalType:
    """The array's own type, unless its elements become of another."""
    given, fitted = call.given[0], call.arguments[0]
    assert isinstance(given, ArrayType)
    assert isinstance(fitted, ArrayType)
    return given if given.element.nullable() == fitted.element.nullable() else fitted


def _keys(call: FittedCall) -> LogicalType | None:
    map = call.arguments[0]
    return ArrayType(map.key) if isinstance(map, MapType) else None


def _values(call: FittedCall) -> LogicalType | None:
    map = call.arguments[0]
    return ArrayType(map.value) if isinstance(map, MapType) else None


def _entries(call: FittedCall) -> LogicalType | None:
    map = call.arguments[0]
    if not isinstance(map, MapType):
        return None
    return ArrayType(RowType((RowField("key", map.key), RowField("value", map.value))))


def _map_of_arrays(call: FittedCall) -> LogicalType | None:
    keys, values = call.arguments
    if not (isinstance(keys, ArrayType) and isinstance(values, ArrayType)):
        return None
    return MapType(keys.element, values.element)


def _same_array(name: str, *shapes: Shape) -> BuiltInFunction:
    return function(name, name.lower(), shapes, argument(0))


def _united(name: str) -> BuiltInFunction:
    return function(name, name.lower(), _ARRAYS, common())


CONSTRUCTORS = (
    function("ROW", "row", [Shape((ANY,), more=ANY)], _row, Nulls.NEVER),
    function(
        "ARRAY", "array", [Shape((ANY,), more=ANY, together=in_common())], _array, Nulls.NEVER
    ),
    function("MAP", "map_", [Shape((ANY, ANY), more=ANY, together=alternating)], _map, Nulls.NEVER),
    function("FIELD", "get", [(ROW,)], _field, Nulls.OWN),
)

COLLECTIONS = (
    function("CARDINALITY", "cardinality", [(COLLECTION,)], _INT),
    function(
        "ITEM",
        "at",
        [(ARRAY, INT), Shape((MAP, ANY), together=_keyed)],
        element,
        Nulls.ALWAYS,
        traits=_FAILS,
    ),
    function("ELEMENT", "element", [(ARRAY,)], element, Nulls.ALWAYS, traits=_FAILS),
    _same_array("ARRAY_APPEND", *_ONE_OF_ITS),
    function(
        "ARRAY_CONTAINS",
        "array_contains",
        _ONE_OF_ITS,
        _unless_no_array(always(DataTypes.BOOLEAN())),
        Nulls.OWN,
    ),
    _same_array("ARRAY_DISTINCT", Shape((ARRAY,))),
    function("ARRAY_POSITION", "array_position", _ONE_OF_ITS, _INT),
    _same_array("ARRAY_PREPEND", *_ONE_OF_ITS),
    function("ARRAY_REMOVE", "array_remove", _ONE_OF_ITS, _unless_no_array(_kept), Nulls.OWN),
    _same_array("ARRAY_REVERSE", Shape((ARRAY,))),
    _same_array("ARRAY_SLICE", Shape((ARRAY, INT)), Shape((ARRAY, INT, INT))),
    _same_array(
        "ARRAY_SORT",
        Shape((_SORTED,)),
        Shape((_SORTED, BOOLEAN)),
        Shape((_SORTED, BOOLEAN, BOOLEAN)),
    ),
    _united("ARRAY_UNION"),
    function(
        "ARRAY_CONCAT",
        "array_concat",
        [Shape((ARRAY,), more=ARRAY, together=in_common())],
        common(),
    ),
    _united("ARRAY_EXCEPT"),
    _united("ARRAY_INTERSECT"),
    function("ARRAY_MAX", "array_max", [(_SORTED,)], element, Nulls.ALWAYS),
    function("ARRAY_MIN", "array_min", [(_SORTED,)], element, Nulls.ALWAYS),
    function(
        "ARRAY_JOIN",
        "array_join",
        [(array_of(STRING), TEXT), (array_of(STRING), TEXT, TEXT)],
        _STRING,
    ),
    function("MAP_KEYS", "map_keys", [(MAP,)], _keys),
    function("MAP_UNION", "map_union", [Shape((MAP,), more=MAP, together=in_common())], common()),
    function("MAP_VALUES", "map_values", [(MAP,)], _values),
    function("MAP_ENTRIES", "map_entries", [(MAP,)], _entries),
    function("MAP_FROM_ARRAYS", "map_from_arrays", [(ARRAY, ARRAY)], _map_of_arrays, traits=_FAILS),
    function("SPLIT", "split", [(TEXT, TEXT)], DataTypes.ARRAY(_STRING)),
)
