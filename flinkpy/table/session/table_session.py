"""What the statements of one TableEnvironment share, and how one becomes a plan and a job."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.common.logical_types.logical_type import LogicalType, RowType, TimeAttribute
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.sql.catalog.catalog_manager import CatalogManager
from flinkpy.sql.catalog.catalog_port import CatalogTable, CatalogView, ObjectPath
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.sql_errors import SqlError, ValidationError
from flinkpy.sql.syntax.query_tree import Identifier, Query, Select, SelectItem, StarItem
from flinkpy.sql.syntax.query_tree import TableReference as Reference
from flinkpy.sql.syntax.statements import ColumnDefinition, Insert, QueryStatement, TableDefinition
from flinkpy.table.factories.found_factories import FoundFactories
from flinkpy.table.factories.taken_streams import options_to_take, taken_stream
from flinkpy.table.session.session_functions import SessionFunctions, python_function
from flinkpy.table.session.session_jobs import SessionJobs
from flinkpy.table.session.streams_of_tables import check_only_added, with_event_times
from flinkpy.table.table_config import TableConfig

_LOG = engine_logger(__name__)
UNNAMED = ("$program", "unnamed")  # the catalog and database of tables without a name

if TYPE_CHECKING:
    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.plans.planner import Plan, Planner
    from flinkpy.table.translation.plan_translator import PlanTranslator


class TableSession:
    """Catalogs, options, connectors and functions, over an environment of streams."""

    def __init__(
        self, env: StreamExecutionEnvironment, config: TableConfig, *, catalog: str, database: str
    ) -> None:
        self.env, self.config = env, config
        self.catalogs = CatalogManager(built_in_functions(), catalog, database, python_function)
        self.registry = SessionFunctions(self.catalogs.functions)
        self.connectors = FoundFactories()
        self.jobs = SessionJobs()
        self._lent: dict[str, tuple[Any, Any]] = {}  # options of the environment: own, given
        self._trees: dict[str, Query] = {}
        self._numbers = itertools.count()

    @property
    def is_batch(self) -> bool:
        """Whether tables are bounded and results final."""
        return self.config.is_batch

    # -- text to plan to stream --------------------------------------------------------------------

    def plan_of_query(self, query: Query) -> Plan:
        """The plan of a query whose rows are collected."""
        return _told(self._planner().query(query))

    def plan_of_insert(self, insert: Insert) -> Plan:
        """The plan of an INSERT."""
        return _told(self._planner().insert(insert))

    def translated(self, plan: Plan) -> DataStream | None:
        """The stream of a plan's rows; None if they go into a table."""
        return self.translator().translated(plan.physical)

    def translator(self) -> PlanTranslator:
        """Translates the plans of one job."""
        from flinkpy.relational.functions.async_limits import AsyncLimits
        from flinkpy.table.translation.plan_translator import PlanTranslator
        from flinkpy.table.translation.rows_for_sinks import SinkRules
        from flinkpy.table.translation.translation_context import TranslationRules

        self._configure()
        options = self.config.options
        sinks = SinkRules(
            options.text("table.exec.sink.not-null-enforcer").lower() == "drop",
            options.value("table.exec.state.ttl") // timedelta(milliseconds=1),
        )
        idle_timeout = options.value("table.exec.source.idle-timeout") or None
        retries = options.text("table.exec.async-scalar.retry-strategy").lower() != "no_retry"
        limits = AsyncLimits(
            options.value("table.exec.async-scalar.max-concurrent-operations"),
            options.value("table.exec.async-scalar.timeout"),
            options.value("table.exec.async-scalar.max-attempts") if retries else 1,
            options.value("table.exec.async-scalar.retry-delay"),
        )
        lookups = AsyncLimits(
            options.value("table.exec.async-lookup.buffer-capacity"),
            options.value("table.exec.async-lookup.timeout"),
        )
        rules = TranslationRules(
            options.zone, sinks, idle_timeout, async_limits=limits, lookup_limits=lookups
        )
        return PlanTranslator(self.env, self.connectors, self.registry, rules)

    def _configure(self) -> None:
        """Gives the environment the options of the session; one that was reset has the value there
        that the program gave it."""
        values = self.env.program.values
        for key, (own, given) in self._lent.items():
            if values.get(key) != given:
                continue  # the program has set it since
            if own is None:
                del values[key]
            else:
                values[key] = own
        before = dict(values)
        self.env.configure(self.config.job_options)
        self._lent = {
            key: (before.get(key), value)
            for key, value in values.items()
            if before.get(key) != value
        }

    def stream_of(self, query: Query, *, only_added: bool = False) -> DataStream:
        """The rows of a query; a time attribute is their event time. Raises ValidationError for
        rows that change, if they may only be added."""
        plan = self.plan_of_query(query)
        if only_added:
            check_only_added(plan.physical)
        stream = self.translated(plan)
        assert stream is not None, "a query has rows"
        return with_event_times(stream, plan.logical.schema)

    def changes_of(
        self, query: Query, table: TableDefinition, changes: ChangelogMode
    ) -> DataStream:
        """The rows of a query, of these kinds, as those that are written into a table are; one
        without columns has those of the query."""
        options = options_to_take(changes)
        target = CatalogTable(table.columns, options, primary_key=table.primary_key)
        name = self.unnamed_sink(target, self.type_of_query(query))
        plan = self.plan_of_insert(Insert(name, query))
        self.translated(plan)
        return taken_stream(target)

    def _planner(self) -> Planner:
        from flinkpy.sql.binding.binding_context import BindingContext
        from flinkpy.sql.plans.planner import Planner

        zone = {"table.local-time-zone": self.config.options.zone}
        context = BindingContext(
            self.catalogs,
            self.registry,
            self.connectors,
            self.parsed_query,
            {**self.config.options.given, **zone},
            self.catalogs.functions.adopted_name,
        )
        return Planner(context, self.is_batch)

    def parsed_query(self, text: str) -> Query:
        """The query of a view; it may be one that a program made without text."""
        if text in self._trees:
            return self._trees[text]
        from flinkpy.sql.parsing.parse import parse_statement

        statement = parse_statement(text)
        if not isinstance(statement, QueryStatement):
            raise ValidationError(
                "this is no query, such as SELECT, WITH or VALUES; execute_sql() runs statements",
                text,
                statement.span,
            )
        return statement.query

    # -- types (QueryTypes) ------------------------------------------------------------------------

    def type_of_query(self, query: Query) -> RowType:
        """The names and types of a query's columns."""
        return self.shown_type(self._planner().binder.query(query).schema)

    def type_of_table(self, table: CatalogTable) -> RowType:
        """All columns of a declared table, also computed ones."""
        try:
            return self.shown_type(
                self._planner().binder.declared_columns(
                    ObjectPath(*UNNAMED, "declared_table"), table
                )
            )
        except SqlError as error:
            raise type(error)(error.problem) from None

    def shown_type(self, rows: RowType) -> RowType:
        """The type of rows as users see it: in BATCH an event time is a time as any other."""
        if not self.is_batch:
            return rows
        fields = tuple(replace(each, type=_without_rowtime(each.type)) for each in rows.fields)
        return replace(rows, fields=fields)

    # -- tables that the program makes -------------------------------------------------------------

    def view_of(self, query: Query) -> CatalogView:
        """A view that means this tree."""
        key = f"a table of the program, number {next(self._numbers)}"
        self._trees[key] = query
        return CatalogView(key, key, self.type_of_query(query))

    def unnamed(self, table: CatalogTable) -> Query:
        """A query over a table that has no name of the user's."""
        return _all_of(self._registered(table))

    def unnamed_view(self, query: Query) -> ObjectPath:
        """A name for a query that has none of the user's."""
        return self._registered(self.view_of(query))

    def unnamed_sink(self, table: CatalogTable, rows: RowType) -> Identifier:
        """A name for a table to write into; one without columns has those of the rows."""
        if not table.columns:
            columns = tuple(ColumnDefinition(field.name, _stored(field.type)) for field in rows)
            table = replace(table, columns=columns)
        path = self._registered(table)
        return Identifier((path.catalog, path.database, path.name))

    def _registered(self, table: CatalogTable | CatalogView) -> ObjectPath:
        path = ObjectPath(*UNNAMED, f"table_{next(self._numbers)}")
        self.catalogs.temporary_tables[path] = table
        return path


def _told(plan: Plan) -> Plan:
    """The plan, of which the log says what may make its results wrong."""
    for each in plan.warnings:
        _LOG.warning("%s", each)
    return plan


def _all_of(path: ObjectPath) -> Query:
    name = Identifier((path.catalog, path.database, path.name))
    return Select((SelectItem(StarItem()),), Reference(name))


def _without_rowtime(type: LogicalType) -> LogicalType:
    is_rowtime = getattr(type, "time_attribute", None) is TimeAttribute.ROWTIME
    return _stored(type) if is_rowtime else type


def _stored(type: LogicalType) -> LogicalType:
    """The type in a table, where a time attribute is a time as any other."""
    if getattr(type, "time_attribute", None) is None:
        return type
    return replace(type, time_attribute=None)  # type: ignore[call-arg]
