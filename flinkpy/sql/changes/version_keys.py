"""By which columns a join finds the versions of a table: the upsert key of the table. What else ON
makes equal is a condition: a row of the key is replaced whatever these columns are then."""

from __future__ import annotations

from dataclasses import replace

from flinkpy.sql.changes.upsert_keys import in_order, upsert_keys
from flinkpy.sql.physical.physical_nodes import Exchange, TemporalJoin
from flinkpy.sql.rex.rex_nodes import Rex, RexInput
from flinkpy.sql.rules.conditions import comparison, conjunction, conjuncts
from flinkpy.sql.sql_errors import ValidationError


def by_version_key(node: TemporalJoin) -> TemporalJoin:
    """The join by the key of its right. Raises ValidationError, in Flink's words, if there is none
    among the columns that are equal."""
    left, right = node.inputs
    assert isinstance(left, Exchange)
    assert isinstance(right, Exchange)
    keys = [frozenset(node.version_key)] if node.version_key else in_order(upsert_keys(right.input))
    first = {column: at for at, column in reversed([*enumerate(node.right_keys)])}
    key = next((each for each in keys if each and each <= first.keys()), None)
    if key is None:
        raise ValidationError(
            "Temporal Table Join requires primary key in versioned table, but no primary key can "
            "be found among the columns that ON makes equal; declare PRIMARY KEY (...) NOT "
            "ENFORCED, or keep the last row of each key (ROW_NUMBER() OVER (PARTITION BY key ORDER "
            "BY time DESC) = 1), and name each column of the key in ON"
        )
    chosen = [first[column] for column in sorted(key)]
    others = [at for at in range(len(node.right_keys)) if at not in chosen]
    left_keys = tuple(node.left_keys[at] for at in chosen)
    right_keys = tuple(node.right_keys[at] for at in chosen)
    return replace(
        node,
        left=replace(left, keys=left_keys),
        right=replace(right, keys=right_keys),
        left_keys=left_keys,
        right_keys=right_keys,
        null_safe=tuple(node.null_safe[at] for at in chosen),
        condition=conjunction([*(_equal(node, at) for at in others), *conjuncts(node.condition)]),
    )


def _equal(node: TemporalJoin, at: int) -> Rex:
    one, other = node.left_keys[at], node.right_keys[at]
    left = RexInput(node.left.schema.fields[one].type, index=one)
    width = len(node.left.schema.fields)
    right = RexInput(node.right.schema.fields[other].type, index=width + other)
    return comparison(left, right, "IS NOT DISTINCT FROM" if node.null_safe[at] else "=")
