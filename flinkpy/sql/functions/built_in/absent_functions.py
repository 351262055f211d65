"""The functions of Flink that flinkpy does not have, each with the reason that its error gives."""

from __future__ import annotations

_BITMAPS = "there is no type BITMAP; collect distinct values with COUNT(DISTINCT ...) or ARRAY_AGG"
_VARIANT = "there is no type VARIANT; keep JSON as text and read it with JSON_VALUE or JSON_QUERY"
_STRUCTURED = "structured types are Java classes; use ROW(...) and its fields"
_COLUMN = "it is a column of windowed tables (TUMBLE, HOP, CUMULATE, SESSION), no function"
_CHANGES = "tables have no conversion between changes and rows; to_changelog_stream() of Python has"

ABSENT: dict[str, str] = {
    "PARSE_JSON": _VARIANT,
    "TRY_PARSE_JSON": _VARIANT,
    "OBJECT_OF": _STRUCTURED,
    "OBJECT_UPDATE": _STRUCTURED,
    "CURRENT_DATABASE": "queries know no session; env.get_current_database() says it",
    "ML_PREDICT": "there are no models in catalogs; call a Python function (udf)",
    "TO_CHANGELOG": _CHANGES,
    "FROM_CHANGELOG": _CHANGES,
    "WINDOW_START": _COLUMN,
    "WINDOW_END": _COLUMN,
    "WINDOW_TIME": _COLUMN,
    "BITMAP_BUILD": _BITMAPS,
    "BITMAP_FROM_BYTES": _BITMAPS,
    "BITMAP_TO_BYTES": _BITMAPS,
    "BITMAP_TO_ARRAY": _BITMAPS,
    "BITMAP_TO_STRING": _BITMAPS,
    "BITMAP_CARDINALITY": _BITMAPS,
    "BITMAP_AND": _BITMAPS,
    "BITMAP_OR": _BITMAPS,
    "BITMAP_XOR": _BITMAPS,
    "BITMAP_ANDNOT": _BITMAPS,
    "BITMAP_AND_CARDINALITY": _BITMAPS,
    "BITMAP_BUILD_AGG": _BITMAPS,
    "BITMAP_BUILD_CARDINALITY_AGG": _BITMAPS,
    "BITMAP_AND_AGG": _BITMAPS,
    "BITMAP_AND_CARDINALITY_AGG": _BITMAPS,
    "BITMAP_OR_AGG": _BITMAPS,
    "BITMAP_OR_CARDINALITY_AGG": _BITMAPS,
    "BITMAP_XOR_AGG": _BITMAPS,
    "BITMAP_XOR_CARDINALITY_AGG": _BITMAPS,
}
