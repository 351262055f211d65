"""Bitmaps: sets of numbers of 32 bits, and what is made of them."""

from __future__ import annotations

from flinkpy.common.logical_types.data_types import DataTypes
from flinkpy.sql.functions.argument_kinds import BINARY, BITMAP, exactly
from flinkpy.sql.functions.built_in_function import BuiltInFunction, Traits, function

_BITMAP = DataTypes.BITMAP()
_INTEGERS = exactly(DataTypes.ARRAY(DataTypes.INT()))


def _of_two(name: str) -> BuiltInFunction:
    return function(name, name.lower(), [(BITMAP, BITMAP)], _BITMAP)


BITMAPS = (
    function("BITMAP_BUILD", "bitmap_build", [(_INTEGERS,)], _BITMAP),
    function(
        "BITMAP_FROM_BYTES", "bitmap_from_bytes", [(BINARY,)], _BITMAP, traits=Traits(can_fail=True)
    ),
    function("BITMAP_TO_BYTES", "bitmap_to_bytes", [(BITMAP,)], DataTypes.BYTES()),
    function("BITMAP_TO_ARRAY", "bitmap_to_array", [(BITMAP,)], DataTypes.ARRAY(DataTypes.INT())),
    function("BITMAP_TO_STRING", "bitmap_to_string", [(BITMAP,)], DataTypes.STRING()),
    function("BITMAP_CARDINALITY", "bitmap_cardinality", [(BITMAP,)], DataTypes.BIGINT()),
    _of_two("BITMAP_AND"),
    _of_two("BITMAP_OR"),
    _of_two("BITMAP_XOR"),
    _of_two("BITMAP_ANDNOT"),
)
