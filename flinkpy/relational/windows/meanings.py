"""What an aggregate of windows computes, in words: state is only for the query that has made it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from flinkpy.core.errors import SavepointRestoreError
from flinkpy.sql.rex.relational_terms import WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall

_MEANING = b"aggregates"  # in the metadata of saved schemas


def meaning_of(
    calls: Sequence[AggregateCall], keys: Sequence[str], window: WindowSpec, names: Sequence[str]
) -> str:
    """What is aggregated in which windows. Columns go by name: their order changes with what else a
    query reads.

    >>> from flinkpy.common.logical_types.logical_type import BigIntType
    >>> from flinkpy.sql.rex.relational_terms import WindowKind
    >>> count = AggregateCall("COUNT", (1,), BigIntType(), distinct=True)
    >>> meaning_of([count], ["k"], WindowSpec(WindowKind.TUMBLE, 0, 10), ["ts", "n"])
    '[k, COUNT(DISTINCT n)] in TUMBLE(10 ms, 0 ms)'
    """
    texts = [
        f"{call.function.upper()}({'DISTINCT ' if call.distinct else ''}"
        f"{', '.join(_name(names, at) for at in call.arguments)})"
        + ("" if call.filter is None else f" FILTER {_name(names, call.filter)}")
        for call in calls
    ]
    lengths = [window.size, *([] if window.step is None else [window.step]), window.offset]
    of = f"{window.kind.value}({', '.join(f'{each} ms' for each in lengths)})"
    return f"[{', '.join([*keys, *texts])}] in {of}"


def _name(names: Sequence[str], at: int) -> str:
    return names[at] if at < len(names) else f"column {at}"


def check_meaning(operator: str, saved: str, wanted: str) -> None:
    """Raises SavepointRestoreError if the state means something else."""
    if saved != wanted:
        raise SavepointRestoreError(
            f"the state of {operator!r} is of another query: it has {saved}, and the operator now "
            f"has {wanted}; start from it with the query as it was, or without this state"
        )


def with_meaning(schema: pa.Schema, meaning: str) -> pa.Schema:
    """The schema of saved columns, which says what they are."""
    return schema.with_metadata({_MEANING: meaning.encode()})


def meaning_in(schema: pa.Schema) -> str:
    """What saved columns are; empty if they do not say."""
    found: bytes = (schema.metadata or {}).get(_MEANING, b"")
    return found.decode()
