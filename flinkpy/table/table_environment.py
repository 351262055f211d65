"""The environments of tables, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.common.changelog_mode import ALL_CHANGES, ChangelogMode
from flinkpy.common.configuration import Configuration
from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.common.types import Row, RowKind
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.program_line import refuse
from flinkpy.sql.catalog.catalog_port import CatalogOrigin, CatalogTable, CatalogView, ObjectPath
from flinkpy.sql.syntax.query_tree import Query, Select, SelectItem, StarItem, TableReference
from flinkpy.table.environment_settings import EnvironmentSettings
from flinkpy.table.explain_detail import ExplainDetail
from flinkpy.table.schema import Schema
from flinkpy.table.session.program_tables import (
    arrow_rows,
    changelog_definition,
    changelog_table,
    elements_table,
    stream_table,
)
from flinkpy.table.session.statement_execution import StatementExecution
from flinkpy.table.session.table_paths import identifier_of
from flinkpy.table.session.table_session import TableSession
from flinkpy.table.statement_set import StatementSet
from flinkpy.table.table import Table
from flinkpy.table.table_config import TableConfig
from flinkpy.table.table_descriptor import TableDescriptor
from flinkpy.table.table_result import TableResult
from flinkpy.table.udf import UserDefinedFunction, UserDefinedFunctionWrapper, function_of

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from flinkpy.datastream import DataStream, StreamExecutionEnvironment
    from flinkpy.sql.syntax.statements import Statement
    from flinkpy.table.catalog import Catalog, CatalogDescriptor


class TableEnvironment:
    """Executes SQL, and makes tables.

    >>> table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    >>> table_env.list_tables()
    []
    """

    def __init__(self, session: TableSession) -> None:
        self._session = session
        self._execution = StatementExecution(session)

    @staticmethod
    def create(environment_settings: EnvironmentSettings | Configuration) -> TableEnvironment:
        """An environment for tables only, in BATCH or STREAMING."""
        from flinkpy.datastream import StreamExecutionEnvironment

        env = StreamExecutionEnvironment.get_execution_environment()
        return TableEnvironment(_session(env, _settings(environment_settings)))

    # -- SQL ---------------------------------------------------------------------------------------

    def execute_sql(self, stmt: str) -> TableResult:
        """Executes one statement. A query and an INSERT run a job. Raises SqlParserError and
        ValidationError, which show the place.

        >>> table_env.execute_sql("SELECT 1").print()  # doctest: +SKIP
        """
        return self._execution.execute_text(stmt)

    def execute(self, statement: Statement, text: str) -> TableResult:
        """Executes a statement that was parsed from this text, as scripts do."""
        return self._execution.execute(statement, text)

    def sql_query(self, query: str) -> Table:
        """A table that a query describes; nothing runs yet."""
        return Table(self._session, self._session.parsed_query(query), query)

    def explain_sql(self, stmt: str, *extra_details: ExplainDetail) -> str:
        """The plan of a query or an INSERT."""
        return self._execution.explained_text(stmt, extra_details)

    def create_statement_set(self) -> StatementSet:
        """A set of INSERTs that run as one job."""
        return StatementSet(self._execution)

    def get_config(self) -> TableConfig:
        """The options."""
        return self._session.config

    # -- tables ------------------------------------------------------------------------------------

    def from_path(self, path: str) -> Table:
        """The table or view of a name. Raises ValidationError, which names the nearest, if there
        is none."""
        return self._table(_all_of(path))

    def from_descriptor(self, descriptor: TableDescriptor) -> Table:
        """A table that has no name."""
        return self._table(self._session.unnamed(descriptor.as_table()))

    def from_elements(
        self,
        elements: Iterable[Any],
        schema: LogicalType | Sequence[str] | None = None,
        verify_schema: bool = True,
    ) -> Table:
        """Rows of the program. ``schema`` is a ROW, or the names of the columns, whose types the
        values then show.

        >>> table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> table_env.from_elements([(1, "a")], ["n", "s"]).get_schema().names
        ('n', 's')
        """
        return self._table(self._session.unnamed(elements_table(elements, schema)))

    def from_arrow(self, data: object) -> Table:
        """The rows of a ``pyarrow.Table``, or of what gives an Arrow stream."""
        return self._table(self._session.unnamed(arrow_rows(data)))

    def from_pandas(
        self, pdf: pd.DataFrame, schema: LogicalType | Sequence[str] | None = None
    ) -> Table:
        """The rows of a pandas frame, without its index."""
        return self._table(self._session.unnamed(arrow_rows(pdf, schema)))

    def from_polars(self, frame: pl.DataFrame) -> Table:
        """The rows of a Polars frame."""
        return self.from_arrow(frame)

    def create_temporary_view(
        self, view_path: str, table_or_data_stream: Table | DataStream, *fields_or_schema: Any
    ) -> None:
        """Gives a table, or a stream of rows with a type or of columns, a name; for a stream as in
        ``from_data_stream``."""
        if isinstance(table_or_data_stream, Table):
            view: CatalogTable | CatalogView = self._session.view_of(table_or_data_stream.query)
        else:
            view = stream_table(table_or_data_stream, fields_or_schema)
        self._session.catalogs.create_table(self._path(view_path), view, temporary=True)

    def create_view(
        self, view_path: str, table: Table, ignore_if_exists: bool | None = False
    ) -> bool:
        """Gives a table a name in the catalog. Whether that is new."""
        return self._session.catalogs.create_table(
            self._path(view_path),
            self._session.view_of(table.query),
            if_not_exists=bool(ignore_if_exists),
        )

    def create_temporary_table(
        self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool | None = False
    ) -> None:
        """Declares a table for this session."""
        self._session.catalogs.create_table(
            self._path(path),
            descriptor.as_table(),
            temporary=True,
            if_not_exists=bool(ignore_if_exists),
        )

    def create_table(
        self, path: str, descriptor: TableDescriptor, ignore_if_exists: bool | None = False
    ) -> bool:
        """Declares a table in the catalog. Whether it is new."""
        return self._session.catalogs.create_table(
            self._path(path), descriptor.as_table(), if_not_exists=bool(ignore_if_exists)
        )

    def drop_table(self, table_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Whether there was one."""
        return self._drop(table_path, False, False, bool(ignore_if_not_exists))

    def drop_view(self, view_path: str, ignore_if_not_exists: bool | None = True) -> bool:
        """Whether there was one."""
        return self._drop(view_path, True, False, bool(ignore_if_not_exists))

    def drop_temporary_table(self, table_path: str) -> bool:
        """Whether there was one."""
        return self._drop(table_path, False, True, True)

    def drop_temporary_view(self, view_path: str) -> bool:
        """Whether there was one."""
        return self._drop(view_path, True, True, True)

    # -- functions of users ------------------------------------------------------------------------

    def create_temporary_system_function(
        self, name: str, function: UserDefinedFunctionWrapper | UserDefinedFunction
    ) -> None:
        """Gives a function of ``udf`` a name for this session, which is called without a path.

        >>> table_env = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
        >>> from flinkpy.table.udf import udf
        >>> twice = udf(lambda n: 2 * n, result_type="BIGINT")
        >>> table_env.create_temporary_system_function("twice", twice)
        >>> table_env.list_user_defined_functions()
        ['twice']
        """
        self._session.catalogs.functions.set_system(name, function_of(function))

    def create_temporary_function(
        self, path: str, function: UserDefinedFunctionWrapper | UserDefinedFunction
    ) -> None:
        """The same for a name in a catalog and database."""
        self._session.catalogs.functions.set_temporary(self._path(path), function_of(function))

    def drop_temporary_system_function(self, name: str) -> bool:
        """Whether there was one."""
        return self._session.catalogs.functions.drop_system(name)

    def drop_temporary_function(self, path: str) -> bool:
        """Whether there was one."""
        return self._session.catalogs.functions.drop_temporary(self._path(path))

    def drop_function(self, path: str) -> bool:
        """Drops one that SQL created in a catalog. Whether there was one."""
        return self._session.catalogs.functions.drop(self._path(path))

    def create_java_function(self, *_: object) -> NoReturn:
        """There are none: raises ProgramError, which says so."""
        raise _without_java("create_java_function")

    def create_java_temporary_function(self, *_: object) -> NoReturn:
        """There are none: raises ProgramError, which says so."""
        raise _without_java("create_java_temporary_function")

    def create_java_temporary_system_function(self, *_: object) -> NoReturn:
        """There are none: raises ProgramError, which says so."""
        raise _without_java("create_java_temporary_system_function")

    def add_python_file(self, file_path: str) -> None:
        """A module or package that functions import, as of the stream environment."""
        self._session.env.add_python_file(file_path)

    def add_python_archive(self, archive_path: str, target_dir: str | None = None) -> None:
        """An archive that functions read, as of the stream environment."""
        self._session.env.add_python_archive(archive_path, target_dir)

    def set_python_requirements(
        self, requirements_file_path: str, requirements_cache_dir: str | None = None
    ) -> None:
        """Packages that functions need, as of the stream environment."""
        self._session.env.set_python_requirements(requirements_file_path, requirements_cache_dir)

    # -- catalogs ----------------------------------------------------------------------------------

    def list_catalogs(self) -> list[str]:
        """The names of the catalogs."""
        return self._session.catalogs.list_catalogs()

    def list_databases(self) -> list[str]:
        """The databases of the current catalog."""
        return list(self._session.catalogs.catalog(self.get_current_catalog()).list_databases())

    def list_tables(self) -> list[str]:
        """The tables and views of the current database, also temporary ones."""
        return list(self._session.catalogs.list_tables(*self._current()))

    def list_views(self) -> list[str]:
        """The views of the current database, also temporary ones."""
        return self._session.catalogs.list_views(*self._current())

    def list_temporary_tables(self) -> list[str]:
        """The temporary tables and views of the current database."""
        return self._session.catalogs.list_temporary(*self._current())

    def list_temporary_views(self) -> list[str]:
        """The temporary views of the current database."""
        views = set(self.list_views())
        return [name for name in self.list_temporary_tables() if name in views]

    def list_functions(self) -> list[str]:
        """The functions that a statement can call."""
        return list(self._session.catalogs.function_names())

    def list_user_defined_functions(self) -> list[str]:
        """Those that are not SQL's own."""
        return self._session.catalogs.functions.names()

    def list_modules(self) -> list[str]:
        """``core``, which has SQL's own functions."""
        return ["core"]

    def get_current_catalog(self) -> str:
        """The catalog in which names are looked up."""
        return self._session.catalogs.current_catalog

    def get_current_database(self) -> str:
        """The database in which names are looked up."""
        return self._session.catalogs.current_database

    def register_catalog(self, catalog_name: str, catalog: Catalog) -> None:
        """Gives a catalog that the program has made a name. Raises CatalogError if it is taken."""
        from flinkpy.table.catalog import Catalog

        if not isinstance(catalog, Catalog):
            raise ProgramError(
                "register_catalog() takes a catalog of flinkpy.table.catalog, such as "
                f"FileCatalog(name, path); this is {catalog!r:.80}"
            )
        self._session.catalogs.register_catalog(catalog_name, catalog.catalog)

    def create_catalog(self, catalog_name: str, catalog_descriptor: CatalogDescriptor) -> None:
        """Makes a catalog of options, as CREATE CATALOG does."""
        from flinkpy.table.catalogs.made_catalogs import made_catalog

        origin = CatalogOrigin(catalog_descriptor.options, catalog_descriptor.comment)
        made = made_catalog(catalog_name, origin.options)
        self._session.catalogs.register_catalog(catalog_name, made, origin)

    def get_catalog(self, catalog_name: str) -> Catalog:
        """The catalog of this name. Raises CatalogError, which names the nearest, if there is
        none."""
        from flinkpy.table.catalog import Catalog

        return Catalog(self._session.catalogs.catalog(catalog_name))

    def use_catalog(self, catalog_name: str) -> None:
        """Looks names up in another catalog from now on."""
        self._session.catalogs.use_catalog(catalog_name)

    def use_database(self, database_name: str) -> None:
        """Looks names up in another database from now on."""
        self._session.catalogs.use_database(database_name)

    def _current(self) -> tuple[str, str]:
        return self.get_current_catalog(), self.get_current_database()

    def _path(self, path: str) -> ObjectPath:
        return self._session.catalogs.path_of(identifier_of(path).parts)

    def _drop(self, path: str, is_view: bool, temporary: bool, if_exists: bool) -> bool:
        return self._session.catalogs.drop_table(
            self._path(path), is_view=is_view, temporary=temporary, if_exists=if_exists
        )

    def _table(self, query: Query) -> Table:
        return Table(self._session, query)


class StreamTableEnvironment(TableEnvironment):
    """Tables and streams in one program.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> env = StreamExecutionEnvironment.get_execution_environment()
    >>> table_env = StreamTableEnvironment.create(env)
    """

    @staticmethod
    def create(  # type: ignore[override]
        stream_execution_environment: StreamExecutionEnvironment | None = None,
        environment_settings: EnvironmentSettings | Configuration | None = None,
    ) -> StreamTableEnvironment:
        """An environment over one of streams. Without settings the mode is the environment's."""
        from flinkpy.datastream import StreamExecutionEnvironment

        env = stream_execution_environment
        if env is None:
            env = StreamExecutionEnvironment.get_execution_environment()
        if not isinstance(env, StreamExecutionEnvironment):
            raise ProgramError(f"create() takes a StreamExecutionEnvironment, this is {env!r:.80}")
        if environment_settings is None:
            environment_settings = EnvironmentSettings(is_streaming=not _is_batch(env))
        return StreamTableEnvironment(_session(env, _settings(environment_settings)))

    def from_data_stream(self, data_stream: DataStream, *fields_or_schema: Any) -> Table:
        """A table of the rows of a stream: of columns, or of rows with a declared type. A Schema
        behind it declares columns, computed ones, the metadata column ``rowtime`` (event times) and
        watermarks, also ``SOURCE_WATERMARK()``, those of the stream; without columns of its own the
        table has the stream's. Expressions choose and name columns.

        >>> from flinkpy.table import Schema
        >>> schema = (
        ...     Schema.new_builder()
        ...     .column_by_metadata("ts", "TIMESTAMP_LTZ(3)", "rowtime")
        ...     .watermark("ts", "SOURCE_WATERMARK()")
        ...     .build()
        ... )
        >>> table_env.from_data_stream(stream, schema)  # doctest: +SKIP
        """
        return self._table(self._session.unnamed(stream_table(data_stream, fields_or_schema)))

    def to_data_stream(self, table: Table) -> DataStream:
        """The rows of a table as a stream of columns. Its time attribute, if it has one, is their
        event time, and watermarks come with them. Raises ValidationError if its rows change:
        ``to_changelog_stream`` is for these."""
        return self._session.stream_of(table.query, only_added=True)

    def to_append_stream(self, table: Table, type_info: object = None) -> DataStream:
        """The same, under an older name; the columns say their types."""
        return self.to_data_stream(table)

    def from_changelog_stream(
        self,
        data_stream: DataStream,
        schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> Table:
        """A table that the changes of a stream make: each row has a kind (``Row.of_kind``,
        ``Row.set_row_kind``). The schema is that of ``from_data_stream``. ``changelog_mode`` says
        which kinds come, all by default; with ``ChangelogMode.upsert()`` a row replaces the one of
        its key, and the schema has a primary key.

        >>> table_env.from_changelog_stream(
        ...     stream,
        ...     Schema.new_builder().primary_key("id").build(),
        ...     ChangelogMode.upsert(),
        ... )  # doctest: +SKIP
        """
        return self._table(
            self._session.unnamed(changelog_table(data_stream, schema, changelog_mode))
        )

    def to_changelog_stream(
        self,
        table: Table,
        target_schema: Schema | None = None,
        changelog_mode: ChangelogMode | None = None,
    ) -> DataStream:
        """The rows of a table, each with its kind, as a stream of columns. ``target_schema`` has
        the columns that the table is written into, the key by which rows are replaced, and the
        metadata column ``rowtime``, which becomes the event time; without it a time attribute is.
        ``changelog_mode`` says which kinds the stream takes, all by default;
        ``ChangelogMode.upsert()`` needs a primary key. Raises ValidationError if the table gives
        others.

        >>> for row in table_env.to_changelog_stream(table).execute_and_collect():  # doctest: +SKIP
        ...     print(row.get_row_kind(), row)
        """
        if target_schema is None and changelog_mode is None:
            return self._session.stream_of(table.query)
        definition = changelog_definition(target_schema, changelog_mode)
        mode = ALL_CHANGES if changelog_mode is None else changelog_mode
        return self._session.changes_of(table.query, definition, mode)

    def to_retract_stream(self, table: Table, type_info: object = None) -> DataStream:
        """Pairs of a truth value and a row: True adds the row, False takes it back. The older form
        of ``to_changelog_stream``."""
        return self.to_changelog_stream(table).map(_with_flag)


def _with_flag(row: Row) -> tuple[bool, Row]:
    return row.get_row_kind() in (RowKind.INSERT, RowKind.UPDATE_AFTER), row


def _without_java(call: str) -> ProgramError:
    return refuse(
        f"{call}(): no Java runs here; write the function in Python, with udf, and give it to "
        "create_temporary_function()"
    )


def _session(env: StreamExecutionEnvironment, settings: EnvironmentSettings) -> TableSession:
    is_batch = not settings.is_streaming_mode()
    config = TableConfig({"execution.runtime-mode": "BATCH" if is_batch else "STREAMING"})
    config.add_configuration(settings.get_configuration())
    config.session_begins()
    return TableSession(
        env,
        config,
        catalog=settings.get_built_in_catalog_name(),
        database=settings.get_built_in_database_name(),
    )


def _settings(given: EnvironmentSettings | Configuration) -> EnvironmentSettings:
    if isinstance(given, EnvironmentSettings):
        return given
    if isinstance(given, Configuration):
        return EnvironmentSettings.of_configuration(given)
    raise ProgramError(
        f"create() takes EnvironmentSettings or a Configuration, this is {given!r:.80}"
    )


def _is_batch(env: StreamExecutionEnvironment) -> bool:
    from flinkpy.core.options import engine as options
    from flinkpy.core.options.schema import read

    return read(env.program.values, options.RUNTIME_MODE) is options.RuntimeMode.BATCH


def _all_of(path: str) -> Query:
    return Select((SelectItem(StarItem()),), TableReference(identifier_of(path)))
