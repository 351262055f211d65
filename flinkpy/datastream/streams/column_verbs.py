"""What a columnar stream offers beyond rows: expressions over columns, functions over whole batches, aggregates by Arrow kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flinkpy.common.typeinfo import RowTypeInfo
from flinkpy.datastream.checks import check_arity, located, refuse

if TYPE_CHECKING:
    import pyarrow as pa

    from flinkpy.columns.expression import Expression
    from flinkpy.datastream.data_stream import DataStream


class ColumnarOperations:
    """What DataStream inherits. A row stream becomes columnar where its type is declared by Types.ROW or Types.ROW_NAMED."""

    def select(self, *expressions: str | Expression) -> DataStream:
        """The named columns and expressions, in this order; a computed one gets its name by ``alias``.

        >>> from flinkpy.table.expressions import col
        >>> bids.select("auction", (col("price") * 0.908).alias("euro"))  # doctest: +SKIP
        """
        from flinkpy.columns.expressions import named
        from flinkpy.operators.columnar.column_operators import SelectColumnsOperator

        if not expressions:
            raise refuse("select() takes the names of columns, or expressions")
        with located():
            chosen = named(expressions, "select()")
        stream: DataStream = self._as_columns("select()")
        return stream._apply("Select", SelectColumnsOperator(chosen), None, columnar=True)

    def map_batches(self, function: Callable[[Any], Any], batch_format: str = "arrow", *, output: str = "columns",
                    schema: pa.Schema | None = None) -> DataStream:
        """A function over whole batches: ``pyarrow.RecordBatch`` (``batch_format="arrow"``) or ``pandas.DataFrame`` (``"pandas"``).

        It returns a batch of either kind, a ``pyarrow.Table``, or a dict of columns; with ``output="rows"`` any iterable of records.
        ``schema`` says which columns these are, which the program knows then before it runs, and where no record comes.

        >>> flights.map_batches(lambda frame: frame.dropna(), batch_format="pandas")  # doctest: +SKIP
        """
        from flinkpy.operators.columnar.column_operators import MapBatchesOperator

        if not callable(function) or isinstance(function, type):
            raise refuse(f"map_batches() takes a function of a batch, this is {function!r:.80}")
        check_arity(function, 1, "map_batches()")
        if batch_format not in ("arrow", "pandas") or output not in ("columns", "rows"):
            raise refuse(f'map_batches(): batch_format is "arrow" or "pandas", output "columns" or "rows"; these are {batch_format!r} and {output!r}')
        if schema is not None and (output == "rows" or not hasattr(schema, "names")):
            raise refuse(f'map_batches(): schema is a pyarrow.Schema, and goes with output="columns"; this is {schema!r:.80}')
        operator = MapBatchesOperator(function, batch_format, output, schema)
        stream: DataStream = self._as_columns("map_batches()")
        return stream._apply("MapBatches", operator, None, columnar=output == "columns")

    def _filter_columns(self, expression: Expression) -> DataStream:
        from flinkpy.operators.columnar.column_operators import FilterColumnsOperator

        with located():
            expression.refuse_aggregates("filter()")
        stream: DataStream = self._as_columns("filter()")
        return stream._apply("Filter", FilterColumnsOperator(expression), stream._transformation.output_type, columnar=True)

    def _as_columns(self: Any, call: str) -> Any:
        """This stream as columns: itself, or behind a conversion where its rows have a declared type."""
        if self._columnar:
            return self
        declared = self._transformation.output_type
        if not isinstance(declared, RowTypeInfo):
            raise refuse(f"{call} works on columns, and this stream carries Python values of no declared row type: declare it where the records are "
                         "made, for example map(..., output_type=Types.ROW_NAMED([names], [types])), or start from a columnar source (from_parquet, "
                         "from_arrow, from_pandas)")
        from flinkpy.operators.columnar.column_operators import RowsToColumnsOperator

        return self._converted("Rows to columns", RowsToColumnsOperator(declared), columnar=True)


class KeyedColumnarOperations:
    """What KeyedStream inherits."""

    def aggregate(self: Any, *aggregates: Expression) -> DataStream:
        """Running aggregates of each key over columns: ``count``, ``sum``, ``avg``, ``min``, ``max`` of expressions.

        For every batch, the updated row of every key in it: the key's columns, then the aggregates. The last row of a key is its result
        (as Flink SQL's mini-batch upserts are). Nulls are left out; ``avg`` is exact for integers: their sum divided by their count.

        >>> from flinkpy.table.expressions import col
        >>> flights.key_by("carrier").aggregate(col("carrier").count.alias("flights"), col("delay").avg.alias("mean"))  # doctest: +SKIP
        """
        from flinkpy.columns.expressions import aggregate_calls
        from flinkpy.operators.columnar.group_aggregate import KeyedAggregatesOperator

        if not aggregates:
            raise refuse('aggregate() takes aggregates of columns, such as col("delay").avg.alias("mean_delay")')
        with located():
            calls = aggregate_calls(aggregates, "aggregate()")
        keys = self._columnar_keys("aggregate()")
        stream = self._as_columns("aggregate()")
        return stream._apply("Aggregate", KeyedAggregatesOperator(keys, calls), None, key=self._key, columnar=True)  # type: ignore[no-any-return]

    def _running_columns(self: Any, name: str, kind: str, position: Any) -> DataStream:
        from flinkpy.operators.columnar.running_aggregate import KeyedColumnAggregateOperator

        operator = KeyedColumnAggregateOperator(kind, position, self._columnar_keys(f"{kind}()"))
        return self._apply(name, operator, None, key=self._key, columnar=True)  # type: ignore[no-any-return]

    def _columnar_keys(self: Any, call: str) -> tuple[str, ...]:
        columns: tuple[str, ...] | None = self._key.columns or getattr(self._key.selector, "_fields", None)
        if columns is None or not all(isinstance(name, str) for name in columns):
            raise refuse(f'{call} over columns needs a key of columns: key_by("name", ...) instead of a function')
        return columns


def is_columnar_key(selector: Any, more: tuple[Any, ...]) -> bool:
    """Whether ``key_by`` was given names of fields."""
    return all(isinstance(each, str) or _is_expression(each) for each in (selector, *more))


def key_columns(keys: tuple[Any, ...], schema: Any = None) -> tuple[str, ...]:
    """The names of the fields; refused where the schema is known and has no such column, or one that cannot be a key."""
    with located():
        names = tuple(each if isinstance(each, str) else each.column_name("key_by()") for each in keys)
        if schema is not None:
            from flinkpy.operators.columnar.key_index import check_keys

            check_keys(names, schema)
    return names


def common_columns(schemas: Iterable[Any], call: str) -> Any:
    """The schema of the records of all these streams, as far as it is known: what may be null in one of them may be null in it. Refuses streams whose
    columns are known to differ, by name, order or type."""
    known = [schema for schema in schemas if schema is not None]
    if not known:
        return None
    from flinkpy.connectors.memory.block_schema import nullable_field

    common, *others = known
    for other in others:
        if common.names != other.names:
            raise refuse(f"{call} needs streams of the same columns, these have {', '.join(common.names)} and {', '.join(other.names)}; "
                         "bring them into line with select(...)")
        for index, (one, two) in enumerate(zip(common, other)):
            if one.equals(two):
                continue
            either = nullable_field(one)
            if not either.equals(nullable_field(two)):
                raise refuse(f"{call} needs columns of the same types, and {one.name!r} is {one.type} here and {two.type} there; bring them into "
                             f"line with select(..., col({one.name!r}).cast(...))")
            common = common.set(index, either)
    return common


def _is_expression(value: Any) -> bool:
    from flinkpy.columns.expression import Expression

    return isinstance(value, Expression)
