"""Which casts may meet a value that they cannot take."""

from __future__ import annotations

from flinkpy.common.logical_types.logical_type import DecimalType, LogicalType, TypeFamily

_TEXTS = (TypeFamily.CHARACTER_STRING, TypeFamily.BINARY_STRING)


def cast_can_fail(source: LogicalType, target: LogicalType) -> bool:
    """Whether a value of the source type may be an error: text that is no number or time, and a
    float that is no decimal (NaN)."""
    pending = [(source, target)]
    while pending:
        have, wanted = pending.pop()
        if have.is_a(TypeFamily.CHARACTER_STRING) and not any(map(wanted.is_a, _TEXTS)):
            return True
        if have.is_a(TypeFamily.APPROXIMATE_NUMERIC) and isinstance(wanted, DecimalType):
            return True
        pending.extend(zip(have.children, wanted.children))
    return False
