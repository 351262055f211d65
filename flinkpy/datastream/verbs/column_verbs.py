"""Methods on columns: expressions, and functions of whole batches. A stream of rows becomes columns if its type is
declared with Types.ROW or ROW_NAMED."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from flinkpy.core.program.extras import imported
from flinkpy.datastream.checks import check_arity, located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream

if TYPE_CHECKING:
    from flinkpy.columns.expression import Expression


def is_expression(value: Any) -> bool:
    """Whether the value is an expression over columns."""
    from flinkpy.columns.expression import Expression

    return isinstance(value, Expression)


def select_columns(stream: RecordedStream, expressions: tuple[str | Expression, ...]) -> ColumnStream:
    """Implements ``select``."""
    from flinkpy.columns.expressions import named
    from flinkpy.operators.columnar.column_operators import SelectColumnsOperator

    if not expressions:
        raise refuse("select() takes the names of columns, or expressions")
    with located():
        chosen = named(expressions, "select()")
    return stream.as_columns("select()").apply_columns("Select", SelectColumnsOperator(chosen))


def select_named(stream: ColumnStream, columns: Iterable[str], computed: Iterable[tuple[str, Expression]]) -> ColumnStream:
    """Some of the columns, and others computed of them."""
    from flinkpy.columns.expressions import col
    from flinkpy.operators.columnar.column_operators import SelectColumnsOperator

    chosen = [*((name, col(name)) for name in columns), *computed]
    return stream.apply_columns("Select", SelectColumnsOperator(chosen))


def filter_columns(stream: RecordedStream, expression: Expression) -> ColumnStream:
    """Implements ``filter`` with an expression."""
    from flinkpy.columns.expression import refuse_aggregates
    from flinkpy.operators.columnar.column_operators import FilterColumnsOperator

    with located():
        refuse_aggregates(expression, "filter()")
    columns = stream.as_columns("filter()")
    return columns.apply_columns("Filter", FilterColumnsOperator(expression), columns.output_type)


def map_batches(stream: RecordedStream, function: Any, batch_format: str, output: str, schema: Any) -> RecordedStream:
    """Implements ``map_batches``."""
    from flinkpy.operators.columnar.column_operators import IN_PANDAS, MapBatchesOperator

    if not callable(function) or isinstance(function, type):
        raise refuse(f"map_batches() takes a function of a batch, this is {function!r:.80}")
    check_arity(function, 1, "map_batches()")
    if batch_format not in ("arrow", "pandas") or output not in ("columns", "rows"):
        raise refuse(f'map_batches(): batch_format is "arrow" or "pandas", output "columns" or "rows"; these are {batch_format!r} and {output!r}')
    if batch_format == "pandas":
        with located():
            imported("pandas", "pandas", IN_PANDAS)
    if schema is not None and (output == "rows" or not hasattr(schema, "names")):
        raise refuse(f'map_batches(): schema is a pyarrow.Schema, and goes with output="columns"; this is {schema!r:.80}')
    operator = MapBatchesOperator(function, batch_format, output, schema)
    columns = stream.as_columns("map_batches()")
    return columns.apply("MapBatches", operator) if output == "rows" else columns.apply_columns("MapBatches", operator)


def common_columns(schemas: Iterable[Any], call: str) -> Any:
    """The common schema of these streams, as far as it is known: a column that may be null in one of them may be null
    in the result.

    Refuses streams whose known columns differ in name, order or type."""
    known = [schema for schema in schemas if schema is not None]
    if not known:
        return None
    from flinkpy.connectors.memory.block_schema import nullable_field

    common, *others = known
    for other in others:
        if common.names != other.names:
            raise refuse(f"{call} needs streams of the same columns, these have {', '.join(common.names)} and {', '.join(other.names)}; "
                         f"bring them into line with select(...){' or union(..., by_name=True)' if call == 'union()' else ''}")
        for index, (one, two) in enumerate(zip(common, other)):
            if one.equals(two):
                continue
            either = nullable_field(one)
            if not either.equals(nullable_field(two)):
                raise refuse(f"{call} needs columns of the same types, and {one.name!r} is {one.type} here and {two.type} there; bring them into "
                             f"line with select(..., col({one.name!r}).cast(...))")
            common = common.set(index, either)
    return common
