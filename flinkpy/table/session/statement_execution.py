"""From the text of a statement to its result: parse, bind, plan, translate, submit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from flinkpy.common.job_client import JobClient
from flinkpy.common.logical_types.logical_type import BigIntType, RowType
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.checkpointing import SAVEPOINT_DIRECTORY
from flinkpy.sql.catalog.statement_rows import OK, STRING, StatementRows, plain_text
from flinkpy.sql.sql_errors import SqlError, ValidationError
from flinkpy.sql.syntax import statements as sql
from flinkpy.sql.syntax.query_tree import Identifier, Query
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.result_kind import ResultKind
from flinkpy.table.results.result_rows import CollectedRows, ReadyRows
from flinkpy.table.session.outside_services import OutsideServices
from flinkpy.table.session.table_session import TableSession
from flinkpy.table.table_result import TableResult

if TYPE_CHECKING:
    from flinkpy.sql.catalog.ddl_execution import DdlExecution


class StatementExecution:
    """Executes statements in a session."""

    def __init__(self, session: TableSession) -> None:
        self._session = session

    def execute_text(self, text: str) -> TableResult:
        """The result of the one statement in a text."""
        from flinkpy.sql.parsing.parse import parse_statement

        return self.execute(parse_statement(text), text)

    def execute(self, statement: sql.Statement, text: str) -> TableResult:
        """Raises SqlError, with the place in the text, for what cannot be run."""
        try:
            return self._executed(statement, text)
        except SqlError as error:
            raise error.within(text) from None

    def _executed(self, statement: sql.Statement, text: str) -> TableResult:
        if isinstance(statement, sql.QueryStatement):
            return self.collect(statement.query)
        if isinstance(statement, sql.Insert):
            return self.insert([statement])
        if isinstance(statement, sql.StatementSetBlock):
            return self.insert(statement.inserts)
        if isinstance(statement, sql.Explain):
            details = [ExplainDetail[each] for each in statement.details]
            text = self.explanation(statement.statement, details)
            return TableResult.of_statement(plain_text(text))
        if isinstance(statement, sql.CreateTable) and statement.query is not None:
            return self._create_as(statement, text)
        if isinstance(statement, (sql.SetOption, sql.ResetOption)):
            return TableResult.of_statement(self._option(statement))
        if isinstance(statement, sql.StopJob):
            folder = self._session.config.job_options.get(SAVEPOINT_DIRECTORY.key)
            return TableResult.of_statement(self._session.jobs.stop(statement, folder))
        if isinstance(statement, sql.Show) and statement.kind == "JOBS":
            return TableResult.of_statement(self._session.jobs.shown())
        if isinstance(statement, sql.Describe) and statement.kind == "JOB":
            name = statement.name
            return TableResult.of_statement(self._session.jobs.described(name.text, name.span))
        ddl = self._ddl(text)
        if ddl.takes(statement):
            return TableResult.of_statement(ddl.execute(statement))
        raise ValidationError(_NOT_HERE[type(statement)], span=statement.span)

    def _ddl(self, text: str) -> DdlExecution:
        from flinkpy.sql.catalog.ddl_execution import DdlExecution

        session = self._session
        services = OutsideServices(session.connectors)
        return DdlExecution(session.catalogs, session, text, services)

    # -- what runs a job ---------------------------------------------------------------------------

    def collect(self, query: Query) -> TableResult:
        """Runs a query; its rows are collected while it runs."""
        from flinkpy.datastream.results.collecting import execute_and_collect
        from flinkpy.datastream.streams.recorded_program import endless_source
        from flinkpy.table.session.submitted_plans import apart

        session = self._session
        plan = session.plan_of_query(query)
        with apart(session.env.program) as job:
            stream = session.translated(plan)
            assert stream is not None, "the rows of a query are collected"
            job.separate()
            ends = endless_source(stream.recorded.transformation) is None
            collected = execute_and_collect(stream.recorded, self._job_name("collect"))
        settles = ends and not plan.physical.changes.is_insert_only
        client = JobClient(collected.job)
        session.jobs.add(client)
        return TableResult(
            session.shown_type(plan.logical.schema),
            CollectedRows(collected, settles=settles),
            job=client,
            has_kinds=not session.is_batch,
            zone=session.config.options.zone,
            most_width=session.config.options.value("table.display.max-column-width"),
        )

    def insert(self, inserts: Sequence[sql.Insert]) -> TableResult:
        """Runs INSERTs as one job. It is not waited for, unless ``table.dml-sync`` says so."""
        return self._waited_for(self._submitted(inserts))

    def _waited_for(self, result: TableResult) -> TableResult:
        if self._session.config.options.value("table.dml-sync"):
            result.wait()
        return result

    def _submitted(self, inserts: Sequence[sql.Insert]) -> TableResult:
        from flinkpy.datastream.env.submission import submit
        from flinkpy.table.session.submitted_plans import apart

        session = self._session
        plans = [session.plan_of_insert(each) for each in inserts]
        targets = [str(plan.physical.path).replace("`", "") for plan in plans]  # type: ignore[attr-defined]
        with apart(session.env.program) as job:
            translator = session.translator()
            for plan in plans:
                translator.translated(plan.physical)
            job.separate()
            name = self._job_name(f"insert-into_{','.join(targets)}")
            submitted = submit(session.env.program, name, waits=True)
        client = JobClient(submitted)
        session.jobs.add(client)
        if not session.config.options.value("table.dml-sync"):
            _ends_with_the_program(submitted)
        return TableResult(
            RowType.of(*((target, BigIntType()) for target in targets)),
            ReadyRows([(-1,) * len(targets)]),
            ResultKind.SUCCESS_WITH_CONTENT,
            client,
        )

    def _create_as(self, statement: sql.CreateTable, text: str) -> TableResult:
        """CREATE TABLE ... AS: the table has the columns of the query. It is there as soon as the
        job is: one that cannot be planned leaves no table, one that fails later does."""
        from flinkpy.sql.catalog.declared_tables import table_of_query

        query = statement.query
        assert query is not None
        session = self._session
        path = session.catalogs.path_of(statement.name.parts)
        is_there = session.catalogs.table_at(path) is not None
        if is_there and statement.if_not_exists:
            return TableResult.of_statement(OK)
        fields = session.type_of_query(query).fields
        columns = tuple(Identifier((field.name,)) for field in fields)
        insert = sql.Insert(statement.name, query, columns, span=statement.span)
        with session.catalogs.declared_if_it_succeeds(path):
            self._ddl(text).execute(table_of_query(statement, fields))
            result = self._submitted([insert])
        return self._waited_for(result)

    def _job_name(self, default: str) -> str:
        return str(self._session.config.job_options.get("pipeline.name", default))

    # -- what runs none ----------------------------------------------------------------------------

    def explained_text(self, text: str, details: Sequence[ExplainDetail]) -> str:
        """The plan of the one statement in a text."""
        from flinkpy.sql.parsing.parse import parse_statement

        try:
            return self.explanation(parse_statement(text), details)
        except SqlError as error:
            raise error.within(text) from None

    def explanation(self, statement: sql.Statement, details: Sequence[ExplainDetail] = ()) -> str:
        """The plan of a statement as text."""
        from flinkpy.table.session.explanations import explanation

        return explanation(self._session, statement, [detail.name for detail in details])

    def _option(self, statement: sql.SetOption | sql.ResetOption) -> StatementRows:
        config = self._session.config
        if isinstance(statement, sql.ResetOption):
            with _telling_the_place():
                config.reset(statement.key)
            return OK
        if statement.key is None or statement.value is None:
            schema = RowType.of(("key", STRING), ("value", STRING))
            return StatementRows(schema, tuple(sorted(config.to_map().items())))
        with _telling_the_place():
            config.set(statement.key, statement.value)
        return OK


@contextmanager
def _telling_the_place() -> Iterator[None]:
    """What is wrong with an option is wrong with the statement."""
    try:
        yield
    except ConfigurationError as error:
        raise ValidationError(str(error)) from None


_NOT_HERE: dict[type[sql.Statement], str] = {
    sql.TruncateTable: "TRUNCATE TABLE is not supported; in BATCH, INSERT OVERWRITE t SELECT * "
    "FROM t WHERE FALSE empties a table of files",
    sql.AnalyzeTable: "ANALYZE TABLE is not supported: how many rows a table has is read from its "
    "files when a query is planned",
    sql.Leave: "this is a command of the prompt of flinkpy sql, not a statement",
}


def _ends_with_the_program(job: Any) -> None:
    """At its own end the program waits for a job that would end with it."""
    from flinkpy.cluster.end_of_program import register_background_job

    register_background_job(job)
