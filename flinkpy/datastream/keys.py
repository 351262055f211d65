"""Key selectors made from field names."""

from __future__ import annotations

from typing import Any

from flinkpy.operators.fields import field_of


class FieldKey:
    """The key of a row: one field, or a tuple of several.

    >>> FieldKey(("a",))({"a": 1, "b": 2}), FieldKey((1, 0))(("x", "y"))
    (1, ('y', 'x'))
    """

    def __init__(self, fields: tuple[int | str, ...]) -> None:
        self._fields = fields

    def __call__(self, value: Any) -> Any:
        fields = self._fields
        if len(fields) == 1:
            return field_of(value, fields[0])
        return tuple([field_of(value, field) for field in fields])

    def __repr__(self) -> str:
        return f"FieldKey({', '.join(map(str, self._fields))})"
