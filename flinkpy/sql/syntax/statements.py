"""Statements as they were written."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.syntax.query_tree import Identifier, Query, SqlExpression, SqlLiteral, SqlNode

Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Statement(SqlNode):
    """What can stand before a semicolon."""


@dataclass(frozen=True)
class QueryStatement(Statement):
    """A query whose rows go to whoever asks."""

    query: Query


@dataclass(frozen=True)
class Insert(Statement):
    """``INSERT INTO`` or ``OVERWRITE``, with static partitions and the columns that are given."""

    table: Identifier
    query: Query
    columns: tuple[Identifier, ...] = ()
    partition: tuple[tuple[str, SqlLiteral], ...] = ()
    overwrite: bool = False
    options: Options = ()  # the hint OPTIONS


@dataclass(frozen=True)
class StatementSetBlock(Statement):
    """``EXECUTE STATEMENT SET BEGIN ... END``."""

    inserts: tuple[Insert, ...]


@dataclass(frozen=True)
class Explain(Statement):
    """``EXPLAIN [details] statement``; details are ESTIMATED_COST, CHANGELOG_MODE,
    JSON_EXECUTION_PLAN, PLAN_ADVICE."""

    statement: Statement
    details: tuple[str, ...] = ()


# -- tables and views ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ColumnDefinition(SqlNode):
    """A physical column: its type says whether it may be null."""

    name: str
    type: LogicalType
    comment: str | None = None


@dataclass(frozen=True)
class ComputedColumn(SqlNode):
    """``name AS expression``."""

    name: str
    value: SqlExpression
    comment: str | None = None


@dataclass(frozen=True)
class MetadataColumn(SqlNode):
    """``name type METADATA [FROM 'key'] [VIRTUAL]``."""

    name: str
    type: LogicalType
    key: str | None = None
    is_virtual: bool = False
    comment: str | None = None


AnyColumn = ColumnDefinition | ComputedColumn | MetadataColumn


@dataclass(frozen=True)
class WatermarkDefinition(SqlNode):
    """``WATERMARK FOR column AS expression``."""

    column: Identifier
    strategy: SqlExpression


@dataclass(frozen=True)
class PrimaryKey(SqlNode):
    """``PRIMARY KEY (columns) NOT ENFORCED``."""

    columns: tuple[str, ...]
    name: str | None = None
    enforced: bool = False


@dataclass(frozen=True)
class TableDefinition(SqlNode):
    """What stands in the parentheses of CREATE TABLE."""

    columns: tuple[AnyColumn, ...] = ()
    watermarks: tuple[WatermarkDefinition, ...] = ()
    primary_key: PrimaryKey | None = None


@dataclass(frozen=True)
class LikeClause(SqlNode):
    """``LIKE table (INCLUDING ALL EXCLUDING OPTIONS)``: pairs of INCLUDING, EXCLUDING or
    OVERWRITING and ALL, OPTIONS, ..."""

    table: Identifier
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class CreateTable(Statement):
    """Also CTAS (``query``) and LIKE. ``columns_only`` has the names of a CTAS that lists its
    columns without types."""

    name: Identifier
    definition: TableDefinition = TableDefinition()
    partitioned_by: tuple[str, ...] = ()
    distributed_by: tuple[str, ...] = ()
    options: Options = ()
    comment: str | None = None
    like: LikeClause | None = None
    query: Query | None = None
    columns_only: tuple[str, ...] = ()
    temporary: bool = False
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True)
class CreateView(Statement):
    """``query_text`` is the query as written, which SHOW CREATE VIEW shows."""

    name: Identifier
    query: Query
    query_text: str
    columns: tuple[str, ...] = ()
    comment: str | None = None
    temporary: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    """``CREATE FUNCTION name AS 'module.function' LANGUAGE PYTHON``."""

    name: Identifier
    class_name: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class AlterFunction(Statement):
    """``ALTER FUNCTION name AS 'module.function' LANGUAGE PYTHON``."""

    name: Identifier
    class_name: str
    language: str = "JAVA"
    temporary: bool = False
    system: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class CreateCatalog(Statement):
    """``CREATE CATALOG name WITH (...)``."""

    name: str
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class CreateDatabase(Statement):
    """``CREATE DATABASE [catalog.]name WITH (...)``."""

    name: Identifier
    options: Options = ()
    comment: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True)
class Drop(Statement):
    """``kind`` is TABLE, VIEW, FUNCTION, CATALOG or DATABASE."""

    kind: str
    name: Identifier
    temporary: bool = False
    system: bool = False
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class AlterRename(Statement):
    """``ALTER TABLE|VIEW a RENAME TO b``."""

    kind: str
    name: Identifier
    new_name: Identifier
    if_exists: bool = False


@dataclass(frozen=True)
class AlterRenameColumn(Statement):
    """``ALTER TABLE t RENAME a TO b``."""

    name: Identifier
    column: str
    new_column: str
    if_exists: bool = False


@dataclass(frozen=True)
class AlterOptions(Statement):
    """``ALTER TABLE|DATABASE|CATALOG x SET (...)``, or RESET of the keys in ``reset``."""

    kind: str
    name: Identifier
    options: Options = ()
    reset: tuple[str, ...] = ()
    if_exists: bool = False


@dataclass(frozen=True)
class ColumnChange(SqlNode):
    """A column that is added or modified, and where: FIRST, or behind ``after``."""

    column: AnyColumn
    first: bool = False
    after: str | None = None


@dataclass(frozen=True)
class AlterSchema(Statement):
    """``ALTER TABLE t ADD|MODIFY (...)``; ``kind`` is ADD or MODIFY."""

    kind: str
    name: Identifier
    columns: tuple[ColumnChange, ...] = ()
    watermark: WatermarkDefinition | None = None
    primary_key: PrimaryKey | None = None
    if_exists: bool = False


@dataclass(frozen=True)
class AlterDrop(Statement):
    """``ALTER TABLE t DROP`` columns, the primary key, also as the constraint of a name, or the
    watermark."""

    name: Identifier
    columns: tuple[str, ...] = ()
    primary_key: bool = False
    constraint: str | None = None
    watermark: bool = False
    if_exists: bool = False


@dataclass(frozen=True)
class AlterView(Statement):
    """``ALTER VIEW v AS query``."""

    name: Identifier
    query: Query
    query_text: str


@dataclass(frozen=True)
class AddPartition(Statement):
    """``ALTER TABLE t ADD PARTITION (...)``, or DROP."""

    name: Identifier
    partitions: tuple[tuple[tuple[str, SqlLiteral], ...], ...]
    drop: bool = False
    if_exists: bool = False


# -- the session -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Use(Statement):
    """``kind`` is CATALOG, DATABASE or MODULES."""

    kind: str
    names: tuple[Identifier, ...]


@dataclass(frozen=True)
class Show(Statement):
    """``kind`` is TABLES, VIEWS, DATABASES, CATALOGS, FUNCTIONS, USER FUNCTIONS, COLUMNS,
    PARTITIONS, MODULES, FULL MODULES, JARS, JOBS, CREATE TABLE, CREATE VIEW, CREATE CATALOG,
    CURRENT CATALOG or CURRENT DATABASE."""

    kind: str
    name: Identifier | None = None
    pattern: str | None = None  # LIKE
    is_ilike: bool = False
    is_negated: bool = False
    partition: tuple[tuple[str, str], ...] = ()  # of SHOW PARTITIONS


@dataclass(frozen=True)
class Describe(Statement):
    """``DESCRIBE [EXTENDED] name``; ``kind`` is TABLE, CATALOG, DATABASE, FUNCTION or JOB."""

    kind: str
    name: Identifier
    extended: bool = False


@dataclass(frozen=True)
class SetOption(Statement):
    """``SET 'key' = 'value'``; without a key it shows them all."""

    key: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class ResetOption(Statement):
    """``RESET ['key']``."""

    key: str | None = None


@dataclass(frozen=True)
class StopJob(Statement):
    """``STOP JOB 'id' [WITH SAVEPOINT] [WITH DRAIN]``."""

    job_id: str
    with_savepoint: bool = False
    with_drain: bool = False


@dataclass(frozen=True)
class AnalyzeTable(Statement):
    """``ANALYZE TABLE t COMPUTE STATISTICS``."""

    name: Identifier
    columns: tuple[str, ...] = ()
    all_columns: bool = False


@dataclass(frozen=True)
class TruncateTable(Statement):
    """``TRUNCATE TABLE t``."""

    name: Identifier


@dataclass(frozen=True)
class Leave(Statement):
    """``QUIT``, ``EXIT``, ``CLEAR`` and ``HELP`` of the prompt."""

    command: str
