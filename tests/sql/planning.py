"""A session for tests of planning: tables by their columns, without catalogs and connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.catalog.catalog_port import (
    CatalogTable,
    CatalogView,
    ObjectPath,
    SinkAbilities,
    SourceAbilities,
)
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.functions.function_port import Function
from flinkpy.sql.parsing import parse_script, parse_statement, parse_type
from flinkpy.sql.plans.planner import Plan, Planner
from flinkpy.sql.sql_errors import SqlError
from flinkpy.sql.syntax.query_tree import Query
from flinkpy.sql.syntax.statements import (
    AnyColumn,
    ColumnDefinition,
    CreateTable,
    CreateView,
    Insert,
    QueryStatement,
    WatermarkDefinition,
)


def table(columns: str, watermarks: tuple[WatermarkDefinition, ...] = ()) -> CatalogTable:
    """A table of columns ``a INT, b STRING``."""
    return CatalogTable(tuple(_columns(columns)), {"connector": "values"}, watermarks)


def _columns(text: str) -> list[AnyColumn]:
    columns: list[AnyColumn] = []
    depth, start = 0, 0
    for at, character in enumerate(f"{text},"):
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(character, 0)
        if character == "," and depth == 0:
            name, type = text[start:at].split(maxsplit=1)
            columns.append(ColumnDefinition(name, parse_type(type)))
            start = at + 1
    return columns


@dataclass(frozen=True)
class Session:
    """Names, connectors and a planner. ``rows`` are the sizes of tables."""

    tables: Mapping[str, CatalogTable | CatalogView]
    rows: Mapping[str, int] = field(default_factory=dict)
    is_batch: bool = True
    metadata: Mapping[str, LogicalType] = field(default_factory=dict)

    def plan(self, text: str) -> Plan:
        """The plan of a query or an INSERT."""
        try:
            statement = parse_statement(text)
            planner = Planner(self.context, self.is_batch)
            if isinstance(statement, Insert):
                return planner.insert(statement)
            assert isinstance(statement, QueryStatement)
            return planner.query(statement.query)
        except SqlError as error:
            raise error.within(text) from None

    @property
    def context(self) -> BindingContext:
        return BindingContext(self, built_in_functions(), self, parsed_query)

    # -- names -------------------------------------------------------------------------------------

    def find_table(
        self, parts: Sequence[str]
    ) -> tuple[ObjectPath, CatalogTable | CatalogView] | None:
        found = self.tables.get(parts[-1])
        return None if found is None else (self.path_of(parts), found)

    def find_function(self, parts: Sequence[str]) -> Function | None:
        return None

    def path_of(self, parts: Sequence[str]) -> ObjectPath:
        return ObjectPath("default_catalog", "default_database", parts[-1])

    def full_table_names(self, parts: int) -> Sequence[str]:
        return []

    def table_names(self) -> Sequence[str]:
        return list(self.tables)

    def function_names(self) -> Sequence[str]:
        return []

    # -- connectors --------------------------------------------------------------------------------

    def source_abilities(self, path: ObjectPath, table: CatalogTable) -> SourceAbilities:
        return SourceAbilities(
            is_bounded=self.is_batch,
            takes_projection=True,
            takes_filters=True,
            takes_limit=True,
            metadata=self.metadata,
            rows=self.rows.get(path.name),
        )

    def sink_abilities(self, path: ObjectPath, table: CatalogTable) -> SinkAbilities:
        return SinkAbilities(metadata=self.metadata)


def parsed_query(text: str) -> Query:
    """The tree of a query's text."""
    statement = parse_statement(text)
    assert isinstance(statement, QueryStatement)
    return statement.query


TPCH = {
    "region": "r_regionkey INT, r_name STRING, r_comment STRING",
    "nation": "n_nationkey INT, n_name STRING, n_regionkey INT, n_comment STRING",
    "supplier": "s_suppkey BIGINT, s_name STRING, s_address STRING, s_nationkey INT, "
    "s_phone STRING, s_acctbal DECIMAL(15, 2), s_comment STRING",
    "customer": "c_custkey BIGINT, c_name STRING, c_address STRING, c_nationkey INT, "
    "c_phone STRING, c_acctbal DECIMAL(15, 2), c_mktsegment STRING, c_comment STRING",
    "part": "p_partkey BIGINT, p_name STRING, p_mfgr STRING, p_brand STRING, p_type STRING, "
    "p_size INT, p_container STRING, p_retailprice DECIMAL(15, 2), p_comment STRING",
    "partsupp": "ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, "
    "ps_supplycost DECIMAL(15, 2), ps_comment STRING",
    "orders": "o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus STRING, "
    "o_totalprice DECIMAL(15, 2), o_orderdate DATE, o_orderpriority STRING, o_clerk STRING, "
    "o_shippriority INT, o_comment STRING",
    "lineitem": "l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, "
    "l_quantity DECIMAL(15, 2), l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), "
    "l_tax DECIMAL(15, 2), l_returnflag STRING, l_linestatus STRING, l_shipdate DATE, "
    "l_commitdate DATE, l_receiptdate DATE, l_shipinstruct STRING, l_shipmode STRING, "
    "l_comment STRING",
}
TPCH_ROWS = {
    "region": 5,
    "nation": 25,
    "supplier": 10_000,
    "customer": 150_000,
    "part": 200_000,
    "partsupp": 800_000,
    "orders": 1_500_000,
    "lineitem": 6_001_215,
}


def tpch() -> Session:
    """The tables of TPC-H at scale 1."""
    return Session({name: table(columns) for name, columns in TPCH.items()}, TPCH_ROWS)


def session_of(script: str, is_batch: bool = False) -> Session:
    """The tables and views of a script."""
    tables: dict[str, CatalogTable | CatalogView] = {}
    session = Session(tables, is_batch=is_batch)
    for piece in parse_script(script):
        statement = piece.statement
        if isinstance(statement, CreateTable):
            definition = statement.definition
            tables[statement.name.parts[-1]] = CatalogTable(
                definition.columns,
                dict(statement.options),
                definition.watermarks,
                definition.primary_key,
            )
        elif isinstance(statement, CreateView):
            row = Planner(session.context, is_batch).binder.query(statement.query).schema
            tables[statement.name.parts[-1]] = CatalogView(
                statement.query_text, statement.query_text, row
            )
    return session
