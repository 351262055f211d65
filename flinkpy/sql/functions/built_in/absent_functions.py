"""The functions of Flink that flinkpy does not have, each with the reason that its error gives."""

from __future__ import annotations

_VARIANT = "there is no type VARIANT; keep JSON as text and read it with JSON_VALUE or JSON_QUERY"
_STRUCTURED = "structured types are Java classes; use ROW(...) and its fields"
_COLUMN = "it is a column of windowed tables (TUMBLE, HOP, CUMULATE, SESSION), no function"
_CHANGES = (
    "tables have no conversion between changes and rows; from_changelog_stream() and "
    "to_changelog_stream() of Python have one"
)
_NOWHERE = "Flink 2.3 does not have it either; write BITMAP_CARDINALITY(BITMAP_AND(a, b))"

ABSENT: dict[str, str] = {
    "PARSE_JSON": _VARIANT,
    "TRY_PARSE_JSON": _VARIANT,
    "OBJECT_OF": _STRUCTURED,
    "OBJECT_UPDATE": _STRUCTURED,
    "ML_PREDICT": "there are no models in catalogs; call a Python function (udf)",
    "TO_CHANGELOG": _CHANGES,
    "FROM_CHANGELOG": _CHANGES,
    "BITMAP_AND_CARDINALITY": _NOWHERE,
    "WINDOW_START": _COLUMN,
    "WINDOW_END": _COLUMN,
    "WINDOW_TIME": _COLUMN,
}
