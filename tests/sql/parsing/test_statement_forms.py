"""Every form of a statement, with its tree."""

from decimal import Decimal

import pytest

from flinkpy.common.logical_types.logical_type import (
    UNBOUNDED,
    BigIntType,
    DecimalType,
    IntType,
    LocalZonedTimestampType,
    LogicalType,
    TimestampType,
    VarCharType,
)
from flinkpy.sql.parsing import parse_expression, parse_script, parse_statement
from flinkpy.sql.sql_errors import SqlParserError
from flinkpy.sql.syntax.query_tree import Identifier, Query, SqlLiteral
from flinkpy.sql.syntax.statements import (
    AddPartition,
    AlterDrop,
    AlterFunction,
    AlterOptions,
    AlterRename,
    AlterRenameColumn,
    AlterSchema,
    AlterView,
    AnalyzeTable,
    ColumnChange,
    ColumnDefinition,
    ComputedColumn,
    CreateCatalog,
    CreateDatabase,
    CreateFunction,
    CreateTable,
    CreateView,
    Describe,
    Drop,
    Explain,
    Insert,
    Leave,
    LikeClause,
    MetadataColumn,
    PrimaryKey,
    QueryStatement,
    ResetOption,
    SetOption,
    Show,
    Statement,
    StatementSetBlock,
    StopJob,
    TableDefinition,
    TruncateTable,
    Use,
    WatermarkDefinition,
)

INT = IntType()
BIGINT = BigIntType()
STRING = VarCharType(UNBOUNDED)


def name(*parts: str) -> Identifier:
    return Identifier(parts)


def query(text: str) -> Query:
    statement = parse_statement(text)
    assert isinstance(statement, QueryStatement)
    return statement.query


def insert(text: str) -> Insert:
    statement = parse_statement(text)
    assert isinstance(statement, Insert)
    return statement


def one(value: object, type: LogicalType) -> SqlLiteral:
    return SqlLiteral(value, type.not_null())


def column(text: str, type: LogicalType, comment: str | None = None) -> ColumnDefinition:
    return ColumnDefinition(text, type, comment)


def table(*columns: ColumnDefinition) -> TableDefinition:
    return TableDefinition(columns)


E = parse_expression
T = name("t")
Q = "SELECT a FROM s"

FORMS: list[tuple[str, Statement]] = [
    # -- queries, INSERT and sets of them
    (Q, QueryStatement(query(Q))),
    (f"INSERT INTO t {Q}", Insert(T, query(Q))),
    (f"INSERT INTO c.d.t {Q}", Insert(name("c", "d", "t"), query(Q))),
    (f"INSERT OVERWRITE t {Q}", Insert(T, query(Q), overwrite=True)),
    (f"INSERT INTO t ({Q})", Insert(T, query(Q))),
    (f"INSERT INTO t (a, b.c) {Q}", Insert(T, query(Q), (name("a"), name("b", "c")))),
    (
        f"INSERT INTO t /*+ OPTIONS('k'='v', 'l' = 'w') */ {Q}",
        Insert(T, query(Q), options=(("k", "v"), ("l", "w"))),
    ),
    (
        f"INSERT OVERWRITE t PARTITION (d = 'x', n = -1.5) (a) {Q}",
        Insert(
            T,
            query(Q),
            (name("a"),),
            (
                ("d", E("'x'")),  # type: ignore[arg-type]
                ("n", one(Decimal("-1.5"), DecimalType(2, 1))),
            ),
            overwrite=True,
        ),
    ),
    (f"EXECUTE INSERT INTO t {Q}", Insert(T, query(Q))),
    (
        f"EXECUTE STATEMENT SET BEGIN INSERT INTO t {Q}; INSERT INTO u {Q}; END",
        StatementSetBlock((insert(f"INSERT INTO t {Q}"), insert(f"INSERT INTO u {Q}"))),
    ),
    (
        f"BEGIN STATEMENT SET; INSERT INTO t {Q}; END;",
        StatementSetBlock((insert(f"INSERT INTO t {Q}"),)),
    ),
    (f"EXPLAIN {Q}", Explain(QueryStatement(query(Q)))),
    (f"EXPLAIN PLAN FOR INSERT INTO t {Q}", Explain(Insert(T, query(Q)))),
    (
        f"EXPLAIN CHANGELOG_MODE, estimated_cost {Q}",
        Explain(QueryStatement(query(Q)), ("CHANGELOG_MODE", "ESTIMATED_COST")),
    ),
    (
        f"EXPLAIN STATEMENT SET BEGIN INSERT INTO t {Q}; END",
        Explain(StatementSetBlock((insert(f"INSERT INTO t {Q}"),))),
    ),
    # -- CREATE TABLE
    ("CREATE TABLE t (a INT)", CreateTable(T, table(column("a", INT)))),
    (
        "CREATE TEMPORARY TABLE IF NOT EXISTS c.d.t (a INT NOT NULL COMMENT 'it''s a')",
        CreateTable(
            name("c", "d", "t"),
            table(column("a", INT.not_null(), "it's a")),
            temporary=True,
            if_not_exists=True,
        ),
    ),
    (
        "CREATE TABLE t (a INT, b AS a + 1 COMMENT 'c', `from` BIGINT METADATA, "
        "ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL COMMENT 'when', "
        "WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, "
        "CONSTRAINT pk PRIMARY KEY (a, b) NOT ENFORCED) "
        "COMMENT 'all' PARTITIONED BY (a, b) WITH ('connector' = 'print', 'x.y' = '1')",
        CreateTable(
            T,
            TableDefinition(
                (
                    column("a", INT),
                    ComputedColumn("b", E("a + 1"), "c"),
                    MetadataColumn("from", BIGINT),
                    MetadataColumn(
                        "ts",
                        LocalZonedTimestampType(3),
                        "timestamp",
                        is_virtual=True,
                        comment="when",
                    ),
                ),
                (WatermarkDefinition(name("ts"), E("ts - INTERVAL '5' SECOND")),),
                PrimaryKey(("a", "b"), "pk"),
            ),
            ("a", "b"),
            options=(("connector", "print"), ("x.y", "1")),
            comment="all",
        ),
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, b STRING) WITH ()",
        CreateTable(
            T, TableDefinition((column("a", INT), column("b", STRING)), (), PrimaryKey(("a",)))
        ),
    ),
    (
        "CREATE TABLE t (a INT, PRIMARY KEY (a))",
        CreateTable(T, TableDefinition((column("a", INT),), (), PrimaryKey(("a",), enforced=True))),
    ),
    (
        "CREATE TABLE t (WATERMARK FOR a.b AS a.b) WITH ('k' = 'v') LIKE s "
        "(EXCLUDING OPTIONS INCLUDING GENERATED OVERWRITING WATERMARKS)",
        CreateTable(
            T,
            TableDefinition((), (WatermarkDefinition(name("a", "b"), name("a", "b")),)),
            options=(("k", "v"),),
            like=LikeClause(
                name("s"),
                (
                    ("EXCLUDING", "OPTIONS"),
                    ("INCLUDING", "GENERATED"),
                    ("OVERWRITING", "WATERMARKS"),
                ),
            ),
        ),
    ),
    ("CREATE TABLE t LIKE s", CreateTable(T, like=LikeClause(name("s")))),
    (
        f"CREATE OR REPLACE TABLE t WITH ('k' = 'v') AS {Q}",
        CreateTable(T, options=(("k", "v"),), query=query(Q), or_replace=True),
    ),
    (f"CREATE TABLE t (b, a) AS {Q}", CreateTable(T, columns_only=("b", "a"), query=query(Q))),
    # -- other things that are created
    (f"CREATE VIEW v AS {Q}", CreateView(name("v"), query(Q), Q)),
    (
        f"CREATE TEMPORARY VIEW IF NOT EXISTS v (x, y) COMMENT 'c' AS {Q} -- end",
        CreateView(name("v"), query(Q), Q, ("x", "y"), "c", temporary=True, if_not_exists=True),
    ),
    (
        "CREATE TEMPORARY SYSTEM FUNCTION IF NOT EXISTS f AS 'm.f' LANGUAGE PYTHON",
        CreateFunction(name("f"), "m.f", "PYTHON", temporary=True, system=True, if_not_exists=True),
    ),
    (
        "ALTER TEMPORARY SYSTEM FUNCTION IF EXISTS f AS 'm.f' LANGUAGE PYTHON",
        AlterFunction(name("f"), "m.f", "PYTHON", temporary=True, system=True, if_exists=True),
    ),
    ("CREATE FUNCTION d.f AS 'org.F'", CreateFunction(name("d", "f"), "org.F")),
    (
        "CREATE CATALOG IF NOT EXISTS c COMMENT 'x' WITH ('type' = 'file')",
        CreateCatalog("c", (("type", "file"),), "x", if_not_exists=True),
    ),
    ("CREATE DATABASE c.d COMMENT 'x'", CreateDatabase(name("c", "d"), (), "x")),
    (
        "CREATE DATABASE IF NOT EXISTS d WITH ('k'='v')",
        CreateDatabase(name("d"), (("k", "v"),), if_not_exists=True),
    ),
    # -- DROP
    ("DROP TABLE t", Drop("TABLE", T)),
    ("DROP TEMPORARY TABLE IF EXISTS t", Drop("TABLE", T, temporary=True, if_exists=True)),
    ("DROP VIEW IF EXISTS d.v", Drop("VIEW", name("d", "v"), if_exists=True)),
    ("DROP TEMPORARY SYSTEM FUNCTION f", Drop("FUNCTION", name("f"), temporary=True, system=True)),
    ("DROP CATALOG c", Drop("CATALOG", name("c"))),
    ("DROP DATABASE d RESTRICT", Drop("DATABASE", name("d"))),
    (
        "DROP DATABASE IF EXISTS d CASCADE",
        Drop("DATABASE", name("d"), if_exists=True, cascade=True),
    ),
    # -- ALTER
    ("ALTER TABLE t RENAME TO u", AlterRename("TABLE", T, name("u"))),
    ("ALTER VIEW v RENAME TO w", AlterRename("VIEW", name("v"), name("w"))),
    ("ALTER TABLE IF EXISTS t RENAME a TO b", AlterRenameColumn(T, "a", "b", if_exists=True)),
    ("ALTER TABLE t SET ('k' = 'v')", AlterOptions("TABLE", T, (("k", "v"),))),
    ("ALTER TABLE t RESET ('k', 'l')", AlterOptions("TABLE", T, reset=("k", "l"))),
    ("ALTER DATABASE d SET ('k' = 'v')", AlterOptions("DATABASE", name("d"), (("k", "v"),))),
    ("ALTER CATALOG c RESET ('k')", AlterOptions("CATALOG", name("c"), reset=("k",))),
    (
        "ALTER TABLE t ADD a INT FIRST",
        AlterSchema("ADD", T, (ColumnChange(column("a", INT), first=True),)),
    ),
    (
        "ALTER TABLE t ADD (a INT COMMENT 'c' AFTER b, c AS a + 1, PRIMARY KEY (a) NOT ENFORCED, "
        "WATERMARK FOR ts AS ts)",
        AlterSchema(
            "ADD",
            T,
            (
                ColumnChange(column("a", INT, "c"), after="b"),
                ColumnChange(ComputedColumn("c", E("a + 1"))),
            ),
            WatermarkDefinition(name("ts"), name("ts")),
            PrimaryKey(("a",)),
        ),
    ),
    (
        "ALTER TABLE t MODIFY WATERMARK FOR ts AS ts",
        AlterSchema("MODIFY", T, (), WatermarkDefinition(name("ts"), name("ts"))),
    ),
    (
        "ALTER TABLE IF EXISTS t MODIFY ts TIMESTAMP(3)",
        AlterSchema("MODIFY", T, (ColumnChange(column("ts", TimestampType(3))),), if_exists=True),
    ),
    ("ALTER TABLE t DROP a", AlterDrop(T, ("a",))),
    ("ALTER TABLE t DROP (a, `b c`)", AlterDrop(T, ("a", "b c"))),
    ("ALTER TABLE t DROP PRIMARY KEY", AlterDrop(T, primary_key=True)),
    ("ALTER TABLE t DROP CONSTRAINT pk", AlterDrop(T, constraint="pk")),
    ("ALTER TABLE t DROP WATERMARK", AlterDrop(T, watermark=True)),
    (f"ALTER VIEW v AS {Q}", AlterView(name("v"), query(Q), Q)),
    (
        "ALTER TABLE t ADD IF NOT EXISTS PARTITION (d = 1) PARTITION (d = 2)",
        AddPartition(T, ((("d", one(1, INT)),), (("d", one(2, INT)),)), if_exists=True),
    ),
    ("ALTER TABLE t DROP PARTITION (d = 1)", AddPartition(T, ((("d", one(1, INT)),),), drop=True)),
    # -- the session
    ("USE d", Use("DATABASE", (name("d"),))),
    ("USE c.d", Use("DATABASE", (name("c", "d"),))),
    ("USE CATALOG c", Use("CATALOG", (name("c"),))),
    ("USE MODULES core, m", Use("MODULES", (name("core"), name("m")))),
    ("SHOW TABLES", Show("TABLES")),
    ("show tables from c.d not like 'a%'", Show("TABLES", name("c", "d"), "a%", is_negated=True)),
    ("SHOW VIEWS IN d ILIKE 'A%'", Show("VIEWS", name("d"), "A%", is_ilike=True)),
    ("SHOW DATABASES LIKE 'x'", Show("DATABASES", None, "x")),
    ("SHOW CATALOGS", Show("CATALOGS")),
    ("SHOW FUNCTIONS", Show("FUNCTIONS")),
    ("SHOW USER FUNCTIONS FROM d", Show("USER FUNCTIONS", name("d"))),
    ("SHOW COLUMNS FROM t LIKE '%a'", Show("COLUMNS", T, "%a")),
    ("SHOW PARTITIONS t", Show("PARTITIONS", T)),
    ("SHOW MODULES", Show("MODULES")),
    ("SHOW FULL MODULES", Show("FULL MODULES")),
    ("SHOW JARS", Show("JARS")),
    ("SHOW JOBS", Show("JOBS")),
    ("SHOW CREATE TABLE t", Show("CREATE TABLE", T)),
    ("SHOW CREATE VIEW v", Show("CREATE VIEW", name("v"))),
    ("SHOW CREATE CATALOG c", Show("CREATE CATALOG", name("c"))),
    ("SHOW CURRENT CATALOG", Show("CURRENT CATALOG")),
    ("SHOW CURRENT DATABASE", Show("CURRENT DATABASE")),
    ("DESCRIBE c.d.t", Describe("TABLE", name("c", "d", "t"))),
    ("DESC EXTENDED t", Describe("TABLE", T, extended=True)),
    ("DESCRIBE CATALOG EXTENDED c", Describe("CATALOG", name("c"), extended=True)),
    ("DESCRIBE DATABASE d", Describe("DATABASE", name("d"))),
    ("DESCRIBE FUNCTION EXTENDED f", Describe("FUNCTION", name("f"), extended=True)),
    ("DESCRIBE JOB 'ab12'", Describe("JOB", name("ab12"))),
    ("SET", SetOption()),
    ("SET 'k' = 'v'", SetOption("k", "v")),
    ("RESET;", ResetOption()),
    ("RESET 'k'", ResetOption("k")),
    ("STOP JOB 'ab12'", StopJob("ab12")),
    ("STOP JOB 'ab12' WITH SAVEPOINT WITH DRAIN", StopJob("ab12", True, True)),
    ("ANALYZE TABLE t COMPUTE STATISTICS", AnalyzeTable(T)),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS a, b", AnalyzeTable(T, ("a", "b"))),
    ("ANALYZE TABLE t COMPUTE STATISTICS FOR ALL COLUMNS", AnalyzeTable(T, all_columns=True)),
    ("TRUNCATE TABLE t", TruncateTable(T)),
    ("QUIT;", Leave("QUIT")),
    ("exit", Leave("EXIT")),
    ("CLEAR", Leave("CLEAR")),
    ("HELP", Leave("HELP")),
]


@pytest.mark.parametrize(("text", "tree"), FORMS, ids=[text for text, _ in FORMS])
def test_a_statement_has_its_tree(text: str, tree: Statement) -> None:
    read = parse_statement(text)
    assert read == tree
    assert text[read.span.start : read.span.end].rstrip("; ") == text.split(" --")[0].rstrip("; ")


def test_every_kind_of_statement_stands_in_the_table() -> None:
    kinds = {type(tree) for _, tree in FORMS}
    assert set(Statement.__subclasses__()) <= kinds


def test_a_script_is_cut_at_semicolons_that_separate_statements() -> None:
    script = """-- first; a comment
    SELECT ';' AS `a;b` /* ; */ FROM t;

    ;
    EXECUTE STATEMENT SET BEGIN
      INSERT INTO t SELECT 1;
      INSERT INTO u SELECT 2;
    END;
    BEGIN STATEMENT SET; INSERT INTO t SELECT 1; END;
    SET 'a' = 'b'
    """
    pieces = parse_script(script)
    assert [(type(each.statement), each.line) for each in pieces] == [
        (QueryStatement, 2),
        (StatementSetBlock, 5),
        (StatementSetBlock, 9),
        (SetOption, 10),
    ]
    assert pieces[0].text == "SELECT ';' AS `a;b` /* ; */ FROM t"
    assert pieces[3].text == "SET 'a' = 'b'"


def test_an_error_in_a_script_names_its_place_in_the_script() -> None:
    with pytest.raises(SqlParserError) as caught:
        parse_script("SELECT 1;\n\n  SELECT FROM t;")
    assert caught.value.position == (3, 10)


def test_a_script_of_comments_has_no_statements() -> None:
    assert parse_script("-- nothing\n;;/* here */") == []
