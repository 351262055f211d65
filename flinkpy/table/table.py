"""A table of a program: a query that has not run, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from flinkpy.columns import Expression, col
from flinkpy.columns.expression import Aggregate, Alias, Column, SqlCall
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.syntax.query_tree import Query
from flinkpy.sql.syntax.statements import Insert, QueryStatement
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.expression_trees.rewritten_expressions import expanded, with_over, with_window
from flinkpy.table.expression_trees.sql_of_expressions import Tree
from flinkpy.table.expression_trees.user_calls import UserCall, WholeRow
from flinkpy.table.results.html_tables import SHOWN_ROWS, html_table
from flinkpy.table.session import table_verbs
from flinkpy.table.session.statement_execution import StatementExecution
from flinkpy.table.session.table_paths import identifier_of
from flinkpy.table.session.table_session import TableSession
from flinkpy.table.table_result import TableResult
from flinkpy.table.udf import UserDefinedFunctionWrapper
from flinkpy.table.window import GroupWindow, OverWindow, names_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from flinkpy.table.table_descriptor import TableDescriptor


class Table:
    """Made by ``sql_query``, ``from_path`` and their like. It is what a query says, and runs when
    its rows are asked for. In the text of another query its ``str`` is a name for it.

    >>> late = table_env.sql_query("SELECT * FROM flights WHERE dep_delay > 60")  # doctest: +SKIP
    >>> late.to_pandas()  # doctest: +SKIP
    """

    def __init__(self, session: TableSession, query: Query, text: str | None = None) -> None:
        self._session, self.query, self._text = session, query, text
        self._schema = session.type_of_query(query)
        self._name: str | None = None

    def get_schema(self) -> RowType:
        """The names and types of the columns."""
        return self._schema

    get_resolved_schema = get_schema

    def print_schema(self) -> None:
        """Prints the columns as Flink does."""
        print("(")
        print(",\n".join(f"  {field}" for field in self._schema))
        print(")")

    # -- verbs -------------------------------------------------------------------------------------

    def select(self, *fields: Expression) -> Table:
        """Columns computed from the rows; with aggregates, one row of all.

        >>> flights.select(col("carrier"), (col("delay") / 60).alias("hours"))  # doctest: +SKIP
        """
        fields = tuple(expanded(fields, self._schema.names))
        if any(has_aggregate(each) for each in fields if isinstance(each, Expression)):
            return self._made(table_verbs.grouped(self.query, (), fields))
        return self._made(table_verbs.selected(self.query, fields))

    def where(self, predicate: Expression) -> Table:
        """The rows for which the predicate is true."""
        return self._made(table_verbs.filtered(self.query, predicate))

    filter = where

    def group_by(self, *fields: Expression) -> GroupedTable:
        """Groups of rows; ``select`` behind it gives one row for each.

        >>> flights.group_by(col("carrier")).select(
        ...     col("carrier"), col("delay").avg.alias("mean")
        ... )  # doctest: +SKIP
        """
        return GroupedTable(self, fields)

    def window(self, window: GroupWindow) -> GroupWindowedTable:
        """Windows of time: ``group_by`` behind it takes the window's name, and keys.

        >>> flights.window(Tumble.over(lit(1).hours).on(col("ts")).alias("w")).group_by(
        ...     col("w"), col("carrier")
        ... ).select(col("carrier"), col("w").start, col("delay").avg)  # doctest: +SKIP
        """
        if not isinstance(window, GroupWindow):
            raise refuse(f"window() takes Tumble, Slide or Session, this is {window!r:.80}")
        return GroupWindowedTable(self, window.checked())

    def over_window(self, *over_windows: OverWindow) -> OverWindowedTable:
        """Windows of the rows around each row; ``select`` behind it has aggregates over them.

        >>> flights.over_window(
        ...     Over.partition_by(col("carrier")).order_by(col("ts")).alias("w")
        ... ).select(col("carrier"), col("delay").max.over(col("w")))  # doctest: +SKIP
        """
        return OverWindowedTable(self, over_windows)

    def distinct(self) -> Table:
        """Equal rows once."""
        return self._made(table_verbs.distinct_rows(self.query))

    def join(self, right: Table, join_predicate: Expression | None = None) -> Table:
        """Pairs of rows for which the predicate is true. The names of both tables differ."""
        return self._joined(right, "INNER", join_predicate)

    def left_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """The same, and rows of this table without a partner, with nulls."""
        return self._joined(right, "LEFT", join_predicate)

    def right_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """The same, and rows of the other table without a partner, with nulls."""
        return self._joined(right, "RIGHT", join_predicate)

    def full_outer_join(self, right: Table, join_predicate: Expression) -> Table:
        """The same, and rows of both tables without a partner, with nulls."""
        return self._joined(right, "FULL", join_predicate)

    def join_lateral(
        self, table_function_call: Expression, join_predicate: Expression | None = None
    ) -> Table:
        """Each row with each row that a table function makes of it.

        >>> flights.join_lateral(words(col("remark")).alias("word", "length"))  # doctest: +SKIP
        """
        call = self._call_of(table_function_call, FunctionKind.TABLE, "join_lateral()")
        kind = "CROSS" if join_predicate is None else "INNER"
        return self._made(table_verbs.correlated(self.query, call, kind, join_predicate))

    def left_outer_join_lateral(
        self, table_function_call: Expression, join_predicate: Expression | None = None
    ) -> Table:
        """The same, and rows for which the function makes none, with nulls."""
        call = self._call_of(table_function_call, FunctionKind.TABLE, "left_outer_join_lateral()")
        return self._made(table_verbs.correlated(self.query, call, "LEFT", join_predicate))

    def map(self, func: Expression | UserDefinedFunctionWrapper) -> Table:
        """What a scalar function makes of each row: the fields of a ROW, or one value. Without
        arguments the function gets the whole row.

        >>> flights.map(shortened)  # doctest: +SKIP
        """
        call = self._call_of(func, FunctionKind.SCALAR, "map()")
        return self._made(table_verbs.mapped(self.query, call))

    def flat_map(self, func: Expression | UserDefinedFunctionWrapper) -> Table:
        """The rows that a table function makes of each row. Without arguments the function gets
        the whole row."""
        call = self._call_of(func, FunctionKind.TABLE, "flat_map()")
        return self._made(table_verbs.flat_mapped(self.query, call))

    def aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """What an aggregate of ``udaf`` makes of all rows; ``select`` behind it takes its
        columns."""
        return AggregatedTable(self, (), self._call_of(func, FunctionKind.AGGREGATE, "aggregate()"))

    def flat_aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> FlatAggregateTable:
        """The rows that a table aggregate of ``udtaf`` makes of all rows; ``select`` behind it
        takes its columns."""
        return FlatAggregateTable(self, (), self._call_of_rows(func))

    def union(self, right: Table) -> Table:
        """The rows of both tables, equal ones once."""
        return self._made(table_verbs.combined(self.query, right.query, "UNION", False))

    def union_all(self, right: Table) -> Table:
        """The rows of both tables."""
        return self._made(table_verbs.combined(self.query, right.query, "UNION", True))

    def intersect(self, right: Table) -> Table:
        """The rows that both tables have, once."""
        return self._made(table_verbs.combined(self.query, right.query, "INTERSECT", False))

    def intersect_all(self, right: Table) -> Table:
        """The rows that both tables have, as often as both have them."""
        return self._made(table_verbs.combined(self.query, right.query, "INTERSECT", True))

    def minus_all(self, right: Table) -> Table:
        """The rows without those of the other table, each as often as it has more of them."""
        return self._made(table_verbs.combined(self.query, right.query, "EXCEPT", True))

    def minus(self, right: Table) -> Table:
        """The rows that the other table does not have, once."""
        return self._made(table_verbs.combined(self.query, right.query, "EXCEPT", False))

    def order_by(self, *fields: Expression) -> Table:
        """The rows in an order; ``col("a").desc`` sorts downwards.

        >>> flights.order_by(col("delay").desc).fetch(3)  # doctest: +SKIP
        """
        return self._made(table_verbs.ordered(self.query, fields))

    def offset(self, offset: int) -> Table:
        """Without the first rows."""
        return self._made(table_verbs.limited(self.query, offset, None))

    def fetch(self, fetch: int) -> Table:
        """At most so many rows."""
        return self._made(table_verbs.limited(self.query, None, fetch))

    def limit(self, fetch: int, offset: int = 0) -> Table:
        """At most so many rows, without the first ones."""
        return self._made(table_verbs.limited(self.query, offset or None, fetch))

    def alias(self, field: str, *fields: str) -> Table:
        """The first columns under other names."""
        names, new = self._schema.names, [field, *fields]
        if len(new) > len(names):
            raise ProgramError(f"alias() got {len(new)} names for {len(names)} columns")
        return self._made(table_verbs.renamed(self.query, names, [*new, *names[len(new) :]]))

    def add_columns(self, *fields: Expression) -> Table:
        """All columns, and these."""
        return self._made(table_verbs.added(self.query, self._schema.names, fields, False))

    def add_or_replace_columns(self, *fields: Expression) -> Table:
        """All columns, and these; one of the same name is replaced."""
        return self._made(table_verbs.added(self.query, self._schema.names, fields, True))

    def rename_columns(self, *fields: Expression) -> Table:
        """``col("a").alias("b")``: the column a is called b."""
        names = list(self._schema.names)
        new = list(names)
        for each in fields:
            if not isinstance(each, Alias) or each.expression.name is None:
                raise ProgramError("rename_columns() takes col('old').alias('new')")
            table_verbs.require_columns([each.expression.name], names)
            new[names.index(each.expression.name)] = each.name
        return self._made(table_verbs.renamed(self.query, names, new))

    def drop_columns(self, *fields: Expression) -> Table:
        """All columns but these."""
        return self._made(table_verbs.dropped(self.query, self._schema.names, fields))

    def _joined(self, right: Table, kind: str, predicate: Expression | None) -> Table:
        doubled = set(self._schema.names) & set(right.get_schema().names)
        if doubled:
            raise ProgramError(
                f"both tables have a column {min(doubled)!r}: rename one before, with "
                "rename_columns() or alias()"
            )
        return self._made(table_verbs.joined(self.query, right.query, kind, predicate))

    def _call_of(self, given: object, kind: FunctionKind, where: str) -> UserCall:
        """The call of a function of this kind, of the whole row if it has no arguments."""
        if isinstance(given, UserDefinedFunctionWrapper):
            pandas = getattr(given.function.body, "form", "") in ("pandas", "arrow")
            row = [col(name) for name in self._schema.names] if pandas else [WholeRow(self._schema)]
            given = given(*row)
        if not isinstance(given, UserCall) or given.of.kind is not kind:
            word = kind.value.lower()
            raise refuse(f"{where} takes the call of a {word} function, this is {given!r:.80}")
        if (getattr(given.of.body, "form", "") == "table") is not (where == "flat_aggregate()"):
            raise refuse(
                "flat_aggregate() takes what udtaf() makes, and aggregate() that of udaf()"
            )
        return given

    def _call_of_rows(self, given: object) -> UserCall:
        return self._call_of(given, FunctionKind.AGGREGATE, "flat_aggregate()")

    def _made(self, query: Query) -> Table:
        return Table(self._session, query)

    # -- running -----------------------------------------------------------------------------------

    def execute(self) -> TableResult:
        """Runs the query; the rows are fetched from the job."""
        return self._execution.execute(QueryStatement(self.query), self._text or "")

    def execute_insert(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> TableResult:
        """Runs the query; its rows go into a table."""
        insert = self.insert_into(table_path_or_descriptor, overwrite)
        return self._execution.execute(insert, "")

    def insert_into(
        self, table_path_or_descriptor: str | TableDescriptor, overwrite: bool = False
    ) -> Insert:
        """The INSERT of these rows, for a statement set."""
        if isinstance(table_path_or_descriptor, str):
            target = identifier_of(table_path_or_descriptor)
        else:
            target = self._session.unnamed_sink(table_path_or_descriptor.as_table(), self._schema)
        return Insert(target, self.query, overwrite=overwrite)

    def explain(self, *extra_details: ExplainDetail) -> str:
        """The plan as text."""
        return self._execution.explanation(QueryStatement(self.query), extra_details)

    def print_explain(self, *extra_details: ExplainDetail) -> None:
        """Prints what ``explain`` gives."""
        print(self.explain(*extra_details))

    def to_arrow(self) -> pa.Table:
        """All rows as a ``pyarrow.Table``."""
        return self.execute().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas frame."""
        return self.execute().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a Polars frame."""
        return self.execute().to_polars()

    @property
    def _execution(self) -> StatementExecution:
        return StatementExecution(self._session)

    def __getattr__(self, name: str) -> Expression:
        """``table.price``: the column of that name."""
        schema = self.__dict__.get("_schema")
        if name.startswith("_") or schema is None or name not in schema.names:
            raise AttributeError(f"the table has no column or method {name!r}")
        return col(name)

    def __str__(self) -> str:
        """A name for it in the text of a query; it is registered when it is asked for."""
        if self._name is None:
            self._name = str(self._session.unnamed_view(self.query))
        return self._name

    def _repr_html_(self) -> str:
        """In a notebook, the first rows in BATCH, which runs a job; in STREAMING, where they may
        never come, the names and types."""
        if not self._session.is_batch:
            return html_table(self._schema, [], "execute() runs it")
        return self.limit(SHOWN_ROWS + 1).execute()._repr_html_()

    def __repr__(self) -> str:
        return f"<Table ({', '.join(map(str, self._schema))})>"


class GroupedTable:
    """Made by ``group_by``."""

    def __init__(self, table: Table, keys: tuple[Expression, ...]) -> None:
        self._table, self._keys = table, keys

    def select(self, *fields: Expression) -> Table:
        """One row for each group: keys and aggregates."""
        made = table_verbs.grouped(self._table.query, self._keys, fields)
        return Table(self._table._session, made)

    def aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> AggregatedTable:
        """What an aggregate of ``udaf`` makes of each group; ``select`` behind it takes keys and
        its columns."""
        call = self._table._call_of(func, FunctionKind.AGGREGATE, "aggregate()")
        return AggregatedTable(self._table, self._keys, call)

    def flat_aggregate(self, func: Expression | UserDefinedFunctionWrapper) -> FlatAggregateTable:
        """The rows that a table aggregate of ``udtaf`` makes of each group; ``select`` behind it
        takes keys and its columns."""
        return FlatAggregateTable(self._table, self._keys, self._table._call_of_rows(func))


class FlatAggregateTable:
    """Made by ``flat_aggregate``."""

    def __init__(self, table: Table, keys: tuple[Expression, ...], call: UserCall) -> None:
        self._table, self._keys, self._call = table, keys, call

    def select(self, *fields: Expression) -> Table:
        """Of the keys, and of the columns that the table aggregate gives.

        >>> sales.group_by(col("shop")).flat_aggregate(
        ...     top_two(col("price")).alias("price")
        ... ).select(col("shop"), col("price"))  # doctest: +SKIP
        """
        made = table_verbs.flat_aggregated(self._table.query, self._keys, self._call)
        return Table(self._table._session, made).select(*fields)


class AggregatedTable:
    """Made by ``aggregate``."""

    def __init__(self, table: Table, keys: tuple[Expression, ...], call: UserCall) -> None:
        self._table, self._keys, self._call = table, keys, call

    def select(self, *fields: Expression) -> Table:
        """Of the keys, and of what the aggregate gives: the fields of a ROW are columns.

        >>> flights.group_by(col("carrier")).aggregate(
        ...     limits(col("delay")).alias("least", "most")
        ... ).select(col("carrier"), col("most"))  # doctest: +SKIP
        """
        made = table_verbs.aggregated(self._table.query, self._keys, self._call)
        return Table(self._table._session, made).select(*fields)


class GroupWindowedTable:
    """Made by ``window``."""

    def __init__(self, table: Table, window: GroupWindow) -> None:
        self._table, self._window = table, window

    def group_by(self, *fields: Expression) -> WindowGroupedTable:
        """The window by its name, and columns that make groups within it."""
        name = self._window.name
        keys = [each for each in fields if not (isinstance(each, Column) and each.column == name)]
        if len(keys) == len(fields):
            raise refuse(f"group_by() behind window() names the window: col({name!r})")
        return WindowGroupedTable(self._table, self._window, tuple(keys))


class WindowGroupedTable:
    """Made by ``group_by`` behind ``window``."""

    def __init__(self, table: Table, window: GroupWindow, keys: tuple[Expression, ...]) -> None:
        self._table, self._window, self._keys = table, window, keys

    def select(self, *fields: Expression) -> Table:
        """One row for each window and group: keys, aggregates, and ``start``, ``end`` and
        ``rowtime`` of the window."""
        window = self._window
        made = table_verbs.grouped(
            self._table.query,
            (Tree(window.call(), repr(window.name)), *self._keys),
            [with_window(each, str(window.name), window.call) for each in fields],
        )
        return Table(self._table._session, made)


class OverWindowedTable:
    """Made by ``over_window``."""

    def __init__(self, table: Table, windows: Sequence[OverWindow]) -> None:
        self._table, self._windows = table, names_of(windows)

    def select(self, *fields: Expression) -> Table:
        """Each row, with aggregates over the windows."""
        fields = tuple(expanded(fields, self._table.get_schema().names))
        over = [with_over(each, self._windows) for each in fields]
        made = table_verbs.selected(self._table.query, over)
        return Table(self._table._session, made)


def has_aggregate(expression: Expression) -> bool:
    """Whether it is computed from many rows."""
    if isinstance(expression, SqlCall) and (
        expression.is_aggregate or expression.function == "$OVER"
    ):
        return expression.is_aggregate
    if isinstance(expression, UserCall) and expression.is_aggregate:
        return True
    return isinstance(expression, Aggregate) or any(map(has_aggregate, expression.inputs))
