"""Built-in aggregates of records: sum, min and max of a field, min_by and max_by, and the number of
records.

``FieldAggregate.update`` defines them (``docs/values.md`` has the rules). ``update_expression`` is
the same for the values that most records have, written out for generated loops. Where it raises,
the loop calls ``update``."""

from __future__ import annotations

from typing import Any

from flinkpy.aggregates.algebra import Aggregate
from flinkpy.aggregates.builtin import BUILT_IN, OF_FIELDS
from flinkpy.aggregates.fields import Position, field_of, is_indexed, with_field
from flinkpy.core.errors import ProgramError

_BY = "_by"
OF_RECORDS = (*OF_FIELDS, *(name + _BY for name, each in BUILT_IN.items() if each.selects))

Shape = tuple[type, int]


def built_in(kind: str) -> Aggregate:
    """The aggregate of ``kind``, which is one of OF_RECORDS: ``min_by`` selects by ``min``.

    >>> built_in("max_by").name
    'max'
    """
    return BUILT_IN[kind.removesuffix(_BY)]


class FieldAggregate:
    """``sum``, ``min`` and ``max`` replace one field of the first record; ``min_by`` and ``max_by``
    return the whole record, the first of several.

    ``position`` is an index, a field name (dict key, Row field or attribute), or None for the value
    itself.

    >>> (
    ...     FieldAggregate("sum", 1).update(("a", 1), ("b", 2)),
    ...     FieldAggregate("max_by", 1).update(("a", 1), ("b", None)),
    ... )
    (('a', 3), ('a', 1))
    """

    def __init__(self, kind: str, position: Position) -> None:
        if kind not in OF_RECORDS:
            raise ProgramError(f"{kind!r} is no aggregate; choose one of {', '.join(OF_RECORDS)}")
        if isinstance(position, bool) or not isinstance(position, (int, str, type(None))):
            raise ProgramError(
                f"the position of an aggregate is an index, a field name or None, not {position!r}"
            )
        self.kind, self.position = kind, position
        self._of, self._gives_record = built_in(kind), kind.endswith(_BY)

    def update(self, current: object, record: object) -> Any:
        """The aggregate of the aggregate so far and one record, or another aggregate."""
        position = self.position_in(current)
        old, new = field_of(current, position), field_of(record, position)
        if new is None:
            return current
        value = new if old is None else self._of.add(old, new)
        if value is old and self._of.selects:
            return current
        return record if self._gives_record else with_field(current, position, value)

    def position_in(self, record: object) -> Position:
        """The position for this record. PyFlink's default position 0 means the number itself if
        records are plain numbers. (Numpy's numbers have a ``__getitem__``, but no items.)"""
        position = self.position
        return (
            None
            if position == 0
            and (not hasattr(type(record), "__getitem__") or getattr(record, "shape", None) == ())
            else position
        )

    def update_expression(self, sample: Any) -> str | None:
        """The update as an expression over ``current`` and ``record``, for records of the sample's
        shape; None if there is no fast one.

        >>> FieldAggregate("sum", 1).update_expression(("word", 1))
        '(current[0], current[1] + record[1])'
        >>> FieldAggregate("max", None).update_expression(1)
        'current if record <= current else record if record > current else update(current, record)'
        """
        position = self.position_in(sample)
        if (
            isinstance(position, str)
            and not position.isidentifier()
            and not is_indexed(sample, position)
        ):
            return None
        access = (
            ""
            if position is None
            else f"[{position!r}]"
            if is_indexed(sample, position)
            else f".{position}"
        )

        def changed(value: str) -> str:
            return (
                "record"
                if self._gives_record
                else value
                if position is None
                else _with_item(sample, position, value)
            )

        replaces_field = position is not None and not self._gives_record
        if replaces_field and (
            type(sample) is not tuple
            or not isinstance(position, int)
            or not -len(sample) <= position < len(sample)
        ):
            return None
        return self._of.expression("current" + access, "record" + access, changed)


class RecordCount:
    """An AggregateFunction that counts records, whatever they contain."""

    def create_accumulator(self) -> int:
        return 0

    def add(self, value: object, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, acc_a: int, acc_b: int) -> int:
        return acc_a + acc_b


def _with_item(sample: tuple[Any, ...], position: Any, changed: str) -> str:
    index, arity = position % len(sample), len(sample)
    fields = ", ".join(changed if field == index else f"current[{field}]" for field in range(arity))
    return f"({fields}{',' if arity == 1 else ''})"


def shape_of(record: object) -> Shape:
    """What a loop is specialised for: the record's type and, for tuples, its length."""
    return type(record), len(record) if type(record) is tuple else 0
