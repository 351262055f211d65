"""Methods on columns: expressions, functions of whole batches, and joins with a table. A stream of
rows becomes columns if its type is declared with Types.ROW or ROW_NAMED."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flinkpy.common.time import checked_milliseconds
from flinkpy.core.program.extras import imported
from flinkpy.datastream.checks import check_arity, located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream

if TYPE_CHECKING:
    from flinkpy.columns.expression import Expression


def is_expression(value: object) -> bool:
    """Whether the value is an expression over columns."""
    from flinkpy.columns.expression import Expression

    return isinstance(value, Expression)


def select_columns(
    stream: RecordedStream, expressions: tuple[str | Expression, ...]
) -> ColumnStream:
    """Implements ``select``."""
    from flinkpy.columns.expression_functions import named
    from flinkpy.operators.columnar.column_operators import SelectColumnsOperator

    if not expressions:
        raise refuse("select() takes the names of columns, or expressions")
    with located():
        chosen = named(expressions, "select()")
    return stream.as_columns("select()").apply_columns("Select", SelectColumnsOperator(chosen))


def filter_columns(stream: RecordedStream, expression: Expression) -> ColumnStream:
    """Implements ``filter`` with an expression."""
    from flinkpy.columns.expression import refuse_aggregates
    from flinkpy.operators.columnar.column_operators import FilterColumnsOperator

    with located():
        refuse_aggregates(expression, "filter()")
    columns = stream.as_columns("filter()")
    return columns.apply_columns("Filter", FilterColumnsOperator(expression), columns.output_type)


def map_batches(
    stream: RecordedStream, function: object, batch_format: str, output: str, schema: Any
) -> RecordedStream:
    """Implements ``map_batches``."""
    from flinkpy.operators.columnar.column_operators import IN_PANDAS, MapBatchesOperator

    if not callable(function) or isinstance(function, type):
        raise refuse(f"map_batches() takes a function of a batch, this is {function!r:.80}")
    check_arity(function, 1, "map_batches()")
    if batch_format not in ("arrow", "pandas") or output not in ("columns", "rows"):
        raise refuse(
            'map_batches(): batch_format is "arrow" or "pandas", output "columns" or "rows"; '
            f"these are {batch_format!r} and {output!r}"
        )
    if batch_format == "pandas":
        with located():
            imported("pandas", "pandas", IN_PANDAS)
    if schema is not None and (output == "rows" or not hasattr(schema, "names")):
        raise refuse(
            'map_batches(): schema is a pyarrow.Schema, and goes with output="columns"; this '
            f"is {schema!r:.80}"
        )
    operator = MapBatchesOperator(function, batch_format, output, schema)
    columns = stream.as_columns("map_batches()")
    if output == "rows":
        return columns.apply("MapBatches", operator)
    made = columns.apply_columns("MapBatches", operator)
    if schema is not None:
        made.schema = schema  # also behind columns that are not known
    return made


def join_table(
    stream: RecordedStream, table: Any, on: object, how: object, reload_interval: Any
) -> ColumnStream:
    """Implements ``join_table``. ``table`` is anything but a public stream."""
    from flinkpy.connectors.memory.joined_tables import HeldTable, LoadedTable
    from flinkpy.operators.columnar.table_join import JoinTableOperator

    if how not in ("inner", "left"):
        raise refuse(f'join_table(): how is "inner" or "left", this is {how!r:.80}')
    keys = _keys_of(on)
    is_function = callable(table) and not hasattr(table, "__arrow_c_stream__")
    if reload_interval is not None and not is_function:
        raise refuse(
            "join_table(reload_interval=...) is for a function that loads the table: "
            "join_table(load, ...) instead of the data"
        )
    reload_s = (
        None
        if reload_interval is None
        else checked_milliseconds(reload_interval, "join_table(): reload_interval", 1) / 1000
    )
    columns = (stream if stream.before_key is None else stream.before_key).as_columns(
        "join_table()"
    )
    with located():
        held = LoadedTable(table, reload_s) if is_function else HeldTable(table)
        operator = JoinTableOperator(held, keys, keeps_all=how == "left")
    return columns.apply_columns("JoinTable", operator)


def _keys_of(on: object) -> tuple[Sequence[str], Sequence[str]]:
    if isinstance(on, str):
        on = [on]
    if isinstance(on, Mapping):
        left, right = list(on.keys()), list(on.values())
    elif isinstance(on, Sequence):
        left, right = list(on), list(on)
    else:
        left, right = [], []
    if not left or not all(isinstance(name, str) for name in (*left, *right)):
        raise refuse(
            "join_table(): on is the name of a column of both sides, several names, or a dict "
            '{"column of the stream": "column of the '
            f'table"}}; this is {on!r:.80}'
        )
    return left, right


def common_columns(schemas: Iterable[Any], call: str) -> Any:
    """The common schema of these streams, as far as it is known: a column that may be null in one
    of them may be null in the result.

    Refuses streams whose known columns differ in name, order or type."""
    known = [schema for schema in schemas if schema is not None]
    if not known:
        return None
    from flinkpy.connectors.memory.block_schema import nullable_field

    common, *others = known
    for other in others:
        if common.names != other.names:
            raise refuse(
                f"{call} needs streams of the same columns, these have "
                f"{', '.join(common.names)} and {', '.join(other.names)}; "
                "bring them into line with "
                f"select(...){' or union(..., by_name=True)' if call == 'union()' else ''}"
            )
        for index, (one, two) in enumerate(zip(common, other)):
            if one.equals(two):
                continue
            either = nullable_field(one)
            if not either.equals(nullable_field(two)):
                raise refuse(
                    f"{call} needs columns of the same types, and {one.name!r} is {one.type} "
                    f"here and {two.type} there; bring them into "
                    f"line with select(..., col({one.name!r}).cast(...))"
                )
            common = common.set(index, either)
    return common
