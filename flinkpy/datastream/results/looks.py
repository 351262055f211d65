"""What a stream is, and figures about all of it: for a prompt, a notebook and tests.

``count``, ``mean``, ``value_counts`` and ``describe`` each run a job with only what leads to the
stream, and wait for its end. They are of the stream as a table: of running results, the last row of
each key counts."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.typeinfo import RowTypeInfo, TupleTypeInfo, Types
from flinkpy.common.types import Row
from flinkpy.core.errors import ProgramError
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.results.whole_results import arrow_table
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs import key_verbs, row_verbs, shaping

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.columns.expression import Expression

_EXACT = ("mean", "deviation", "least", "greatest")


class UnknownColumns(ProgramError, AttributeError):
    """Raised by ``schema`` and ``columns``; an AttributeError too, so that ``hasattr`` answers."""


def schema_of(stream: RecordedStream) -> pa.Schema:
    """Implements ``schema``."""
    if isinstance(stream, ColumnStream) and stream.schema is not None:
        return stream.schema
    if not isinstance(stream.output_type, RowTypeInfo):
        raise unknown_columns(stream)
    from flinkpy.columns.values.arrow_types import arrow_schema

    with located():
        return arrow_schema(stream.output_type)


def unknown_columns(stream: RecordedStream) -> UnknownColumns:
    """The error for a stream whose columns nobody knows yet."""
    why = (
        (
            "only the batches will show the columns of this stream; give map_batches(..., "
            "schema=...) a schema"
        )
        if stream.is_columnar
        else "this stream carries Python values of no declared row type: declare it where "
        "the records are made, for example "
        "map(..., output_type=Types.ROW_NAMED([names], [types]))"
    )
    return UnknownColumns(str(refuse(f"schema: {why}, or look at take(1)")))


def fields_of(stream: RecordedStream) -> list[tuple[str, str]] | None:
    """Names and types of the fields, as far as they are known while the program is built."""
    if isinstance(stream, ColumnStream) and stream.schema is not None:
        return [(field.name, str(field.type)) for field in stream.schema]
    declared = stream.output_type
    if isinstance(declared, RowTypeInfo):
        return [
            (name, _short(kind)) for name, kind in zip(declared.field_names, declared.field_types)
        ]
    if isinstance(declared, TupleTypeInfo):
        return [(f"f{at}", _short(kind)) for at, kind in enumerate(declared.field_types)]
    return None


def summary(stream: RecordedStream) -> str:
    """What the records are, in a few words."""
    form = "columns" if stream.is_columnar else "rows"
    fields = fields_of(stream)
    if fields is not None:
        return f"{form} {', '.join(f'{name}: {kind}' for name, kind in fields)}"
    return (
        form
        if stream.is_columnar
        else "Python values"
        if stream.output_type is None
        else _short(stream.output_type)
    )


def html_of(stream: RecordedStream, name: str) -> str | None:
    """A table of the stream's fields; None if nothing is known of them. Runs nothing."""
    fields = fields_of(stream)
    if fields is None:
        return None
    lines = "".join(
        f"<tr><td>{html.escape(field)}</td><td><code>{html.escape(kind)}</code></td></tr>"
        for field, kind in fields
    )
    behind = html.escape(stream.transformation.name)
    return (
        f"<div><b>{name}</b> behind {behind}, {'columns' if stream.is_columnar else 'rows'}; "
        "<code>show()</code> runs it</div>"
        f"<table><thead><tr><th>field</th><th>type</th></tr></thead><tbody>{lines}</tbody></table>"
    )


def _short(kind: Any) -> str:
    return repr(kind).replace("Types.", "").replace("()", "")


# -- figures ---------------------------------------------------------------------------------------


def count(stream: RecordedStream, job_name: str | None) -> int:
    """Implements ``count``."""
    from flinkpy.columns.expression_functions import lit

    def counted(records: RecordedStream) -> RecordedStream:
        ones = (
            records
            if records.is_columnar
            else row_verbs.map_records(records, _one, Types.ROW_NAMED(["one"], [Types.INT()]))
        )
        return shaping.aggregate_all(ones, (lit(1).count.alias("records"),), of_table=True)

    return int(
        _first(arrow_table(_unkeyed(stream), job_name, "count()", counted)).get("records", 0)
    )


def mean(stream: RecordedStream, column: Any, job_name: str | None) -> Any:
    """Implements ``mean``."""
    from flinkpy.columns.expression_functions import col

    expression = col(column) if isinstance(column, str) else column
    found = arrow_table(
        _unkeyed(stream),
        job_name,
        "mean()",
        lambda records: shaping.aggregate_all(
            records.as_columns("mean()"), (expression.avg.alias("mean"),), of_table=True
        ),
    )
    return _first(found).get("mean")


def value_counts(stream: RecordedStream, column: str, job_name: str | None) -> dict[Any, int]:
    """Implements ``value_counts``."""
    from flinkpy.columns.expression_functions import lit
    from flinkpy.columns.values.conversion import python_values

    def counted(records: RecordedStream) -> RecordedStream:
        by_value = key_verbs.key_stream(
            records.as_columns("value_counts()"), column, (), None, "value_counts()"
        )
        return key_verbs.aggregate_expressions(
            by_value, (lit(1).count.alias("number of records"),), of_table=True
        )

    table = arrow_table(_unkeyed(stream), job_name, "value_counts()", counted)
    if not table.num_columns:
        return {}
    pairs = zip(python_values(table.column(0).combine_chunks()), table.column(1).to_pylist())
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def describe(stream: RecordedStream, columns: Sequence[str], job_name: str | None) -> list[Row]:
    """Implements ``describe``: a row for each column."""
    columnar = _unkeyed(stream)
    schema = schema_of(columnar)
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        raise refuse(
            f"describe(): there is no column {unknown[0]!r}; there are {', '.join(schema.names)}"
        )
    fields = [schema.field(name) for name in columns or schema.names]
    aggregates = [each for at, field in enumerate(fields) for each in _figures(at, field)]
    found = _first(
        arrow_table(
            columnar,
            job_name,
            "describe()",
            lambda records: shaping.aggregate_all(records, tuple(aggregates), of_table=True),
        )
    )
    return [
        Row(
            column=field.name,
            type=str(field.type),
            count=found.get(f"{at} count", 0),
            **{name: found.get(f"{at} {name}") for name in _EXACT},
        )
        for at, field in enumerate(fields)
    ]


def _figures(at: int, field: pa.Field) -> list[Expression]:
    import pyarrow as pa

    from flinkpy.columns.expression_functions import col

    column, kind = col(field.name), field.type
    figures = {"count": column.count}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        # arithmetic of 64 bits has a sign
        number = column.cast(Types.DOUBLE()) if kind == pa.uint64() else column
        figures |= {"mean": number.avg, "deviation": number.stddev_samp}
    if not (
        pa.types.is_nested(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_null(kind)
        or pa.types.is_binary(kind)
    ):
        figures |= {"least": column.min, "greatest": column.max}
    return [each.alias(f"{at} {name}") for name, each in figures.items()]


def _one(record: object) -> Row:
    return Row(one=1)


def _first(table: pa.Table) -> dict[str, Any]:
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows[0] if rows else {}


def _unkeyed(stream: RecordedStream) -> RecordedStream:
    return stream if stream.before_key is None else stream.before_key
