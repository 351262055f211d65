"""``take`` and ``show``, which return or print a stream's first records, for use at a prompt or in
a notebook.

Each call runs a job of its own, with the operators that lead to this stream, and cancels it when
there are enough records. Sinks of other streams wait for ``execute``. The stream can be used again
afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flinkpy.common.types import Row, RowKind, has_kinds
from flinkpy.datastream.checks import refuse
from flinkpy.datastream.results.collecting import execute_and_collect
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.datastream.streams.recorded_program import endless_source
from flinkpy.graph.changes import is_changing


def first_records(
    stream: RecordedStream, n: Any, job_name: str | None, *, as_table: bool = False
) -> list[Any]:
    """Implements ``take``. ``as_table``: only the last result of each key."""
    if _checked(n, "take()") == 0:
        return []
    with stream.program.only_what_leads_to(stream.transformation):
        results = execute_and_collect(
            stream, job_name or f"take({n})", quiet=False, as_table=as_table
        )
    with results:
        return results.first(n)


def show_records(stream: RecordedStream, n: object, truncate: object, job_name: str | None) -> None:
    """Implements ``show``."""
    from flinkpy.common.text_tables import table

    n = _checked(n, "show()")
    width = _width(truncate)
    names = stream.column_names()
    ends = endless_source(stream.transformation) is None
    records = first_records(stream, n, job_name or f"show({n})", as_table=ends)
    print(table(*_with_kinds(records, names), width))
    if n and len(records) == n:
        print(f"the first {n} record{'s' if n > 1 else ''}")
    if not ends and is_changing(stream.transformation):
        print(
            "the input does not end, so these are changes: a row takes the place of the "
            "earlier one of its key"
        )


def _with_kinds(
    records: list[Any], names: Sequence[str] | None
) -> tuple[list[Any], Sequence[str] | None]:
    """The same, with a first column ``op`` if there are rows of another kind than INSERT."""
    if names is None or not has_kinds() or not all(isinstance(each, Row) for each in records):
        return records, names
    kinds = [each.get_row_kind() for each in records]
    if set(kinds) <= {RowKind.INSERT}:
        return records, names
    return [(str(kind), *row) for kind, row in zip(kinds, records)], ["op", *names]


def _checked(n: object, call: str) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refuse(f"{call} takes a number of records from 0 on, this is {n!r:.80}")
    return n


def _width(truncate: object) -> int | None:
    if isinstance(truncate, bool):
        return 20 if truncate else None
    if not isinstance(truncate, int) or truncate < 1:
        raise refuse(
            f"show(): truncate is True, False or a number of characters, this is {truncate!r:.80}"
        )
    return truncate
