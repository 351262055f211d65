"""What the built-in aggregates of rows mean: sum, min, max, min_by and max_by, running or of a window. ``docs/values.md`` has the rules.

``Aggregate.update`` is the meaning; ``update_expression`` is the same for the values that most records have, written out for generated loops. Where
that raises, the loop asks ``update``.
"""

from __future__ import annotations

from typing import Any

from flinkpy.aggregates.fields import Position, field_of, is_indexed, with_field
from flinkpy.core.errors import ProgramError

AGGREGATES = ("sum", "min", "max", "min_by", "max_by")

Shape = tuple[type, int]


class FieldAggregate:
    """``sum``, ``min`` and ``max`` replace one field of the first record; ``min_by`` and ``max_by`` give the whole record, the first of several.

    ``position`` is an index, a field name (dict key, Row field or attribute), or None for the value itself.

    >>> FieldAggregate("sum", 1).update(("a", 1), ("b", 2)), FieldAggregate("max_by", 1).update(("a", 1), ("b", None))
    (('a', 3), ('a', 1))
    """

    def __init__(self, kind: str, position: Position) -> None:
        if kind not in AGGREGATES:
            raise ProgramError(f"{kind!r} is no aggregate; choose one of {', '.join(AGGREGATES)}")
        if isinstance(position, bool) or not isinstance(position, (int, str, type(None))):
            raise ProgramError(f"the position of an aggregate is an index, a field name or None, not {position!r}")
        self.kind, self.position = kind, position

    def update(self, current: Any, record: Any) -> Any:
        """The aggregate so far, and one record or another aggregate. None is no value; NaN is greater than any other."""
        position = self.position_in(current)
        old, new = field_of(current, position), field_of(record, position)
        if new is None:
            return current
        if self.kind == "sum":
            return with_field(current, position, new if old is None else old + new)
        if old is not None and not self._is_better(new, old):
            return current
        return record if self.kind.endswith("_by") else with_field(current, position, new)

    def _is_better(self, new: Any, old: Any) -> bool:
        smallest = self.kind.startswith("min")
        if new != new:
            return not smallest and bool(old == old)
        if old != old:
            return smallest
        return bool(new < old if smallest else new > old)

    def position_in(self, record: Any) -> Position:
        """PyFlink's default position is 0: of plain numbers it is the number itself. (Numpy's have a ``__getitem__``, and nothing in it.)"""
        position = self.position
        return None if position == 0 and (not hasattr(type(record), "__getitem__") or getattr(record, "shape", None) == ()) else position

    def update_expression(self, sample: Any) -> str | None:
        """The update as an expression over ``current`` and ``record``, for records of the sample's shape; None where there is no fast one.

        It raises where a value is None. What cannot be compared is left to ``update``: it is equal to nothing, so neither form calls it equal.

        >>> FieldAggregate("sum", 1).update_expression(("word", 1))
        '(current[0], current[1] + record[1])'
        >>> FieldAggregate("max", None).update_expression(1)
        'current if record <= current else record if record > current else update(current, record)'
        """
        position = self.position_in(sample)
        if isinstance(position, str) and not position.isidentifier() and not is_indexed(sample, position):
            return None
        access = "" if position is None else f"[{position!r}]" if is_indexed(sample, position) else f".{position}"
        old, new = "current" + access, "record" + access
        whole = position is None or self.kind.endswith("_by")
        if not whole and (type(sample) is not tuple or not isinstance(position, int) or not -len(sample) <= position < len(sample)):
            return None
        changed = f"{old} + {new}" if self.kind == "sum" else new
        replaced = (changed if self.kind == "sum" else "record") if whole else _with_item(sample, position, changed)
        if self.kind == "sum":
            return replaced
        worse, better = (">=", "<") if self.kind.startswith("min") else ("<=", ">")
        return f"current if {new} {worse} {old} else {replaced} if {new} {better} {old} else update(current, record)"


def _with_item(sample: tuple[Any, ...], position: Any, changed: str) -> str:
    index, arity = position % len(sample), len(sample)
    fields = ", ".join(changed if field == index else f"current[{field}]" for field in range(arity))
    return f"({fields}{',' if arity == 1 else ''})"


def shape_of(record: Any) -> Shape:
    """What a loop is specialised for."""
    return type(record), len(record) if type(record) is tuple else 0
