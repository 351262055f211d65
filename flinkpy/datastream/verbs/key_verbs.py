"""``key_by``, and the running results of keyed streams: reductions and aggregates, over rows and
over columns."""

from __future__ import annotations

from typing import Any, NamedTuple

from flinkpy.aggregates.builtin import OF_FIELDS
from flinkpy.aggregates.of_records import built_in
from flinkpy.common.typeinfo import BasicTypeInfo, RowTypeInfo, TupleTypeInfo, TypeInformation
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_function, check_type, located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs.column_verbs import is_expression
from flinkpy.datastream.verbs.field_keys import FieldKey, check_key_fields, check_key_type
from flinkpy.datastream.verbs.key_kinds import key_kind, kind_of_fields
from flinkpy.datastream.verbs.routing import partitioned_by_key
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.rows.keyed import KeyedAggregateOperator, KeyedReduceOperator

_NUMERIC = frozenset({"BYTE", "SHORT", "INT", "LONG", "FLOAT", "DOUBLE", "BIG_INT", "BIG_DEC"})


class Keyed(NamedTuple):
    """A keyed stream and its key."""

    stream: RecordedStream
    key: KeySpec

    def columns(self, call: str) -> tuple[str, ...]:
        """The names of the key's columns. Refuses a key that is a function."""
        columns: tuple[str, ...] | None = self.key.columns or getattr(
            self.key.selector, "_fields", None
        )
        if columns is None or not all(isinstance(name, str) for name in columns):
            raise refuse(
                f'{call} over columns needs a key of columns: key_by("name", ...) instead of '
                "a function"
            )
        return columns


def keyed(stream: RecordedStream) -> Keyed:
    """A stream that ``key_by`` returned, with its key."""
    assert stream.key is not None, "only key_by makes keyed streams"
    return Keyed(stream, stream.key)


# -- keys ------------------------------------------------------------------------------------------


def key_stream(
    stream: RecordedStream,
    selector: Any,
    more: tuple[Any, ...],
    key_type: TypeInformation | None,
    call: str = "key_by()",
) -> Keyed:
    """Implements ``key_by``. The last argument may be the key's type, as in PyFlink. Keying a keyed
    stream replaces its key."""
    if more and isinstance(more[-1], TypeInformation):
        key_type, more = more[-1], more[:-1]
    check_key_type(check_type(key_type, call), call)
    stream = stream if stream.before_key is None else stream.before_key
    if all(isinstance(each, str) or is_expression(each) for each in (selector, *more)):
        names = _key_fields((selector, *more), stream)
        check_key_fields(names, stream.shown_type(), call)
        kind = key_kind(key_type) or kind_of_fields(names, stream.shown_type())
        return keyed(
            partitioned_by_key(
                stream, KeySpec(FieldKey(names), names if stream.is_columnar else None, kind)
            )
        )
    if more:
        raise refuse(f"{call} takes one function, or one or several names of fields")
    check_function(selector, f.KeySelector, "get_key", 1, call)
    return keyed(
        partitioned_by_key(
            stream.as_rows(before_edge=True), KeySpec(selector, kind=key_kind(key_type))
        )
    )


def _key_fields(keys: tuple[Any, ...], stream: RecordedStream) -> tuple[str, ...]:
    """The names of the fields. If the schema is known, refuses columns that do not exist or cannot
    be a key."""
    with located():
        names = tuple(
            each if isinstance(each, str) else each.column_name("key_by()") for each in keys
        )
        if isinstance(stream, ColumnStream) and stream.schema is not None:
            from flinkpy.operators.columnar.key_index import check_keys

            check_keys(names, stream.schema)
    return names


# -- running results -------------------------------------------------------------------------------


def reduce_running(by_key: Keyed, func: object) -> RecordedStream:
    """Implements ``reduce``."""
    check_function(func, f.ReduceFunction, "reduce", 2, "reduce()")
    rows = by_key.stream.as_rows()
    return rows.apply("Reduce", KeyedReduceOperator(func, by_key.key), rows.output_type, by_key.key)


def aggregate_running(by_key: Keyed, kind: str, wanted: object) -> RecordedStream:
    """Implements ``sum``, ``min``, ``max``, ``min_by`` and ``max_by``."""
    name = {"min_by": "MinBy", "max_by": "MaxBy"}.get(kind, kind.capitalize())
    stream, key = by_key
    position: Any = field_position(stream, kind, wanted)
    if stream.is_columnar and kind in OF_FIELDS:
        from flinkpy.operators.keyed_columns.running_aggregate import KeyedColumnAggregateOperator

        return stream.apply_columns(
            name, KeyedColumnAggregateOperator(kind, position, by_key.columns(f"{kind}()")), key=key
        )
    rows = stream.as_rows()
    with located():
        operator = KeyedAggregateOperator(kind, position, key)
    results = rows.apply(name, operator, rows.output_type, key)
    # each is a record of the stream as it was
    return results.as_schema(stream.schema) if isinstance(stream, ColumnStream) else results


def aggregate_expressions(
    by_key: Keyed, aggregates: tuple[Any, ...], *, of_table: bool = False
) -> ColumnStream:
    """Implements ``aggregate``. ``of_table``: it aggregates only the last result of each key."""
    from flinkpy.columns.aggregate_plan import plan_aggregates
    from flinkpy.columns.expression_functions import refuse_doubles
    from flinkpy.operators.keyed_columns.group_aggregate import KeyedAggregatesOperator

    refuse_no_aggregates(aggregates)
    keys = by_key.columns("aggregate()")
    with located():
        plan = plan_aggregates(aggregates, keys, "aggregate()")
        refuse_doubles([*dict.fromkeys(keys), *plan.names], "aggregate()")
        operator = KeyedAggregatesOperator(keys, plan.calls, plan.results)
        operator.takes_last_results = of_table
    return by_key.stream.as_columns("aggregate()").apply_columns(
        "Aggregate", operator, key=by_key.key
    )


def refuse_no_aggregates(aggregates: tuple[Any, ...]) -> None:
    """Refuses ``aggregate()`` without arguments."""
    if not aggregates:
        raise refuse(
            'aggregate() takes aggregates of columns, such as col("delay").avg.alias("mean_delay")'
        )


def field_position(stream: RecordedStream, kind: str, wanted: object) -> int | str | None:
    """The field of an aggregate, checked against the declared type if there is one; None if records
    are plain numbers."""
    position, declared = _position_or_name(kind, wanted), stream.output_type
    if isinstance(declared, RowTypeInfo) and isinstance(position, str):
        if position not in declared.field_names:
            raise refuse(
                f"{kind}({position!r}): the rows have no such field; they have "
                f"{', '.join(declared.field_names)}"
            )
        field = declared.field_types[declared.field_names.index(position)]
    elif isinstance(declared, (RowTypeInfo, TupleTypeInfo)) and isinstance(position, int):
        if not -len(declared.field_types) <= position < len(declared.field_types):
            raise refuse(
                f"{kind}({position}): the records have {len(declared.field_types)} fields, "
                "counted from 0"
            )
        field = declared.field_types[position]
    elif isinstance(declared, TupleTypeInfo):
        raise refuse(
            f"{kind}({position!r}): the records are tuples of {len(declared.field_types)} "
            "fields, which have no names: say a position"
        )
    elif isinstance(declared, BasicTypeInfo):
        return None
    else:
        return position
    if (
        built_in(kind).of_numbers
        and isinstance(field, BasicTypeInfo)
        and field.name not in _NUMERIC
    ):
        raise refuse(
            f"{kind}({position!r}): {kind} needs numbers, and this is a field of {field!r}"
        )
    return position


def _position_or_name(kind: str, position: Any) -> int | str:
    if is_expression(position):
        with located():
            position = position.column_name(f"{kind}()")
    if isinstance(position, bool) or not isinstance(position, (int, str)):
        raise refuse(
            f"{kind}() takes the position or the name of a field, this is {position!r:.80}"
        )
    return position
