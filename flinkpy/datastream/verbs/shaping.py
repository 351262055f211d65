"""Methods that keep most of a stream as it is: more, fewer and other columns, fewer records; and
aggregates of all records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs.key_verbs import key_stream, refuse_no_aggregates

if TYPE_CHECKING:
    from flinkpy.state.ttl.config import StateTtlConfig


def with_columns(
    stream: RecordedStream, expressions: tuple[Any, ...], named_ones: Mapping[str, Any], call: str
) -> ColumnStream:
    """Implements ``with_column`` and ``with_columns``."""
    from flinkpy.columns.expression import as_expression
    from flinkpy.columns.expression_functions import named
    from flinkpy.operators.columnar.reshaping import WithColumnsOperator

    if not expressions and not named_ones:
        raise refuse(f'{call} takes expressions with names, such as euro=col("price") * 0.9')
    with located():
        computed = named(
            [*expressions, *(as_expression(each).alias(name) for name, each in named_ones.items())],
            call,
        )
    return stream.as_columns(call).apply_columns("WithColumns", WithColumnsOperator(computed))


def drop_columns(stream: RecordedStream, names: tuple[Any, ...]) -> ColumnStream:
    """Implements ``drop``."""
    from flinkpy.operators.columnar.reshaping import DropColumnsOperator

    return stream.as_columns("drop()").apply_columns(
        "Drop", DropColumnsOperator(_names(names, "drop()"))
    )


def rename_columns(
    stream: RecordedStream, names: Mapping[str, str], more: Mapping[str, str]
) -> ColumnStream:
    """Implements ``rename``."""
    from flinkpy.operators.columnar.reshaping import RenameColumnsOperator

    if not isinstance(names, Mapping) or not all(
        isinstance(name, str) and name for pair in {**names, **more}.items() for name in pair
    ):
        raise refuse(
            f'rename() takes old and new names, such as rename({{"dep_delay": "delay"}}), '
            f"this is {names!r:.80}"
        )
    if not names and not more:
        raise refuse('rename() takes old and new names, such as rename({"dep_delay": "delay"})')
    return stream.as_columns("rename()").apply_columns(
        "Rename", RenameColumnsOperator({**names, **more})
    )


def _names(columns: tuple[Any, ...], call: str) -> tuple[str, ...]:
    if not columns:
        raise refuse(f"{call} takes the names of columns")
    with located():
        return tuple(
            each if isinstance(each, str) else _column_name(each, call) for each in columns
        )


def _column_name(value: object, call: str) -> str:
    if not hasattr(value, "column_name"):
        raise refuse(f"{call} takes the names of columns, this is {value!r:.80}")
    name: str = value.column_name(call)
    return name


# -- fewer records ---------------------------------------------------------------------------------


class _IsFirst(f.FilterFunction):
    """Whether it is the first record of its key."""

    def __init__(self, ttl: StateTtlConfig | None) -> None:
        self._ttl = ttl

    def open(self, runtime_context: Any) -> None:
        from flinkpy.common.typeinfo import Types
        from flinkpy.state.descriptors import ValueStateDescriptor

        descriptor = ValueStateDescriptor("seen", Types.BOOLEAN())
        if self._ttl is not None:
            descriptor.enable_time_to_live(self._ttl)
        self._seen = runtime_context.get_state(descriptor)

    def filter(self, value: object) -> bool:
        if self._seen.value():
            return False
        self._seen.update(True)
        return True


def _itself(record: object) -> Any:
    return record


def distinct_records(
    stream: RecordedStream, fields: tuple[Any, ...], ttl: StateTtlConfig | None
) -> RecordedStream:
    """Implements ``distinct``."""
    from flinkpy.operators.rows.keyed_stages import KeyedFilterOperator
    from flinkpy.state.ttl.config import StateTtlConfig

    if ttl is not None and not isinstance(ttl, StateTtlConfig):
        raise refuse(
            "distinct(ttl=...) takes a StateTtlConfig, such as "
            f"StateTtlConfig.new_builder(Time.hours(1)).build(), this is {ttl!r:.80}"
        )
    stream = stream if stream.before_key is None else stream.before_key
    if not stream.is_columnar:
        by_key = key_stream(
            stream, fields[0] if fields else _itself, fields[1:], None, "distinct()"
        )
        rows, by_arrival = by_key.stream.as_rows(), KeyedFilterOperator(_IsFirst(ttl), by_key.key)
        by_arrival.by_time = False  # in BATCH too, as over columns
        return rows.apply("Distinct", by_arrival, rows.output_type, by_key.key)
    from flinkpy.operators.keyed_columns.distinct_rows import (
        DistinctRowsOperator,
        ExpiringDistinctRowsOperator,
    )

    keys = _names(fields, "distinct()") if fields else stream.column_names()
    if keys is None:
        raise refuse(
            "distinct() of all columns needs to know them: name them, or give "
            "map_batches(..., schema=...) in front of it a schema"
        )
    by_key = key_stream(stream, keys[0], tuple(keys[1:]), None, "distinct()")
    operator = (
        DistinctRowsOperator(keys) if ttl is None else ExpiringDistinctRowsOperator(keys, ttl)
    )
    return by_key.stream.apply_columns("Distinct", operator, stream.output_type, key=by_key.key)


def limited(stream: RecordedStream, n: object) -> RecordedStream:
    """Implements ``limit``."""
    from flinkpy.operators.results.limit import LimitOperator

    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise refuse(f"limit() takes a number of records from 0 on, this is {n!r:.80}")
    stream = stream if stream.before_key is None else stream.before_key
    apply = stream.apply_columns if stream.is_columnar else stream.apply
    made: RecordedStream = apply("Limit", LimitOperator(n), stream.output_type)
    made.make_non_parallel()
    # so that it can be chained to a source of parallelism 1, and end it
    made.transformation.max_parallelism = None
    return made


# -- streams by the names of their columns ---------------------------------------------------------


def aligned(streams: Sequence[RecordedStream], fill_missing: bool) -> list[RecordedStream]:
    """The streams with the columns of all in the order of the first. Refuses columns that only some
    have, unless they are to be null elsewhere."""
    import pyarrow as pa

    from flinkpy.operators.columnar.reshaping import AlignColumnsOperator

    columnar = [stream.as_columns("union(by_name=True)") for stream in streams]
    schemas = [stream.schema for stream in columnar]
    if any(schema is None for schema in schemas):
        raise refuse(
            "union(by_name=True) needs to know the columns of all streams: select(...) them, "
            "or give map_batches(..., schema=...) a schema"
        )
    fields = {field.name: field for schema in reversed(schemas) for field in schema}
    names = list(dict.fromkeys(name for schema in schemas for name in schema.names))
    for schema in schemas:
        if not fill_missing and set(schema.names) != set(names):
            first = schemas[0].names
            other = next(each.names for each in schemas if set(each.names) != set(first))
            raise refuse(
                "union(by_name=True) needs streams of the same columns, these have "
                f"{', '.join(first)} and {', '.join(other)}; "
                "give fill_missing=True to have null where one is missing"
            )
    wanted = pa.schema([fields[name] for name in names])
    return [
        stream
        if stream.schema.names == names
        else stream.apply_columns("Align", AlignColumnsOperator(wanted))
        for stream in columnar
    ]


# -- aggregates of all records ---------------------------------------------------------------------


def aggregate_all(
    stream: RecordedStream, aggregates: tuple[Any, ...], *, of_table: bool = False
) -> ColumnStream:
    """Implements ``aggregate`` without keys. ``of_table``: it aggregates only the last result of
    each key."""
    from flinkpy.columns.aggregate_plan import plan_aggregates
    from flinkpy.operators.keyed_columns.aggregate_of_all import AggregatesOfAllOperator

    refuse_no_aggregates(aggregates)
    with located():
        plan = plan_aggregates(aggregates, (), "aggregate()")
    columns = stream.as_columns("aggregate()")
    operator = AggregatesOfAllOperator(plan.calls, plan.results, columns.schema)
    operator.takes_last_results = of_table
    made = columns.apply_columns("Aggregate", operator)
    made.make_non_parallel()
    return made
