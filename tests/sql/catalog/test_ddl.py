"""Statements about catalogs: what they change, what they answer, what they refuse."""

from __future__ import annotations

import pytest

from flinkpy.common.logical_types.logical_type import BigIntType, IntType
from flinkpy.sql.catalog.catalog_port import CatalogTable, CatalogView
from flinkpy.sql.sql_errors import CatalogError, Span, ValidationError
from flinkpy.sql.syntax import statements as sql
from flinkpy.sql.syntax.query_tree import Identifier, Select, SelectItem, TableReference
from tests.sql.catalog.sessions import Session, bids, name


@pytest.fixture
def session() -> Session:
    return Session()


def like(*options: tuple[str, str], **parts: object) -> sql.CreateTable:
    clause = sql.LikeClause(name("bids"), options)
    return bids(name=name("other"), like=clause, **parts)


def test_a_table_is_shown_described_and_dropped(session: Session) -> None:
    session.run(bids())
    assert session.rows(sql.Show("TABLES")) == [("bids",)]
    assert session.rows(sql.Describe("TABLE", name("bids"))) == [
        ("auction", "BIGINT", False, "PRI(auction)", None, None),
        ("price", "INT", True, None, None, None),
        ("at", "TIMESTAMP(3)", True, None, None, "`at` - INTERVAL '4' SECOND"),
        ("twice", "BIGINT", True, None, "AS `price` * 2", None),
    ]
    session.run(sql.Drop("TABLE", name("bids")))
    assert session.rows(sql.Show("TABLES")) == []


def test_show_create_table_gives_the_statement_without_its_secrets(session: Session) -> None:
    session.run(bids(partitioned_by=("price",), comment="it's all"))
    shown = session.rows(sql.Show("CREATE TABLE", name("bids")))
    assert shown == [
        (
            "CREATE TABLE `default_catalog`.`default_database`.`bids` (\n"
            "  `auction` BIGINT NOT NULL,\n"
            "  `price` INT,\n"
            "  `at` TIMESTAMP(3),\n"
            "  `twice` AS `price` * 2,\n"
            "  WATERMARK FOR `at` AS `at` - INTERVAL '4' SECOND,\n"
            "  PRIMARY KEY (`auction`) NOT ENFORCED\n"
            ")\n"
            "COMMENT 'it''s all'\n"
            "PARTITIONED BY (`price`)\n"
            "WITH (\n"
            "  'connector' = 'kafka',\n"
            "  'properties.sasl.password' = '******'\n"
            ")\n",
        )
    ]


def test_if_not_exists_leaves_the_table_that_is_there(session: Session) -> None:
    session.run(bids())
    session.run(bids(definition=sql.TableDefinition(), if_not_exists=True))
    assert len(session.rows(sql.Describe("TABLE", name("bids")))) == 4
    with pytest.raises(CatalogError, match=r"there is a table or view .*`bids` already"):
        session.run(bids())


def test_a_temporary_table_hides_the_one_of_the_catalog_until_it_is_dropped(
    session: Session,
) -> None:
    session.run(bids())
    one_column = sql.TableDefinition((sql.ColumnDefinition("a", IntType()),))
    session.run(bids(definition=one_column, temporary=True))
    assert len(session.rows(sql.Describe("TABLE", name("bids")))) == 1
    with pytest.raises(CatalogError, match="DROP TEMPORARY TABLE it first"):
        session.run(sql.Drop("TABLE", name("bids")))
    session.run(sql.Drop("TABLE", name("bids"), temporary=True))
    assert len(session.rows(sql.Describe("TABLE", name("bids")))) == 4


def test_an_unknown_name_is_told_with_the_nearest_one_and_its_place(session: Session) -> None:
    session.run(bids())
    wrong = Identifier(("bid",), span=Span(9, 12))
    with pytest.raises(CatalogError, match=r"(?s)did you mean 'bids'\?.*\^\^\^") as raised:
        session.run(sql.Describe("TABLE", wrong), "DESCRIBE bid")
    assert raised.value.position == (1, 10)


@pytest.mark.parametrize(
    ("options", "columns", "has_watermark", "has_key", "keys"),
    [
        ((), 4, True, True, ["connector", "properties.sasl.password", "topic"]),
        ((("EXCLUDING", "ALL"),), 3, False, False, ["topic"]),
        ((("EXCLUDING", "GENERATED"),), 3, True, True, None),
        ((("EXCLUDING", "ALL"), ("INCLUDING", "CONSTRAINTS")), 3, False, True, ["topic"]),
        ((("EXCLUDING", "WATERMARKS"), ("EXCLUDING", "OPTIONS")), 4, False, True, ["topic"]),
    ],
)
def test_like_takes_what_its_options_say(
    session: Session,
    options: tuple[tuple[str, str], ...],
    columns: int,
    has_watermark: bool,
    has_key: bool,
    keys: list[str] | None,
) -> None:
    session.run(bids())
    session.run(like(*options, definition=sql.TableDefinition(), options=(("topic", "t"),)))
    made = session.manager.find_table(["other"])
    assert made is not None
    table = made[1]
    assert isinstance(table, CatalogTable)
    assert len(table.columns) == columns
    assert bool(table.watermarks) is has_watermark
    assert (table.primary_key is not None) is has_key
    assert keys is None or list(table.options) == keys


def test_a_table_of_like_declares_over_the_columns_of_the_other(session: Session) -> None:
    session.run(bids())
    definition = sql.TableDefinition(
        watermarks=(sql.WatermarkDefinition(name("at"), name("at")),),
        primary_key=sql.PrimaryKey(("auction",)),
    )
    excluded = ("EXCLUDING", "ALL"), ("INCLUDING", "GENERATED")
    session.run(like(*excluded, definition=definition, partitioned_by=("price",)))
    made = session.manager.find_table(["other"])
    assert made is not None
    table = made[1]
    assert isinstance(table, CatalogTable)
    assert table.watermarks == definition.watermarks
    assert table.primary_key == definition.primary_key
    assert table.partition_keys == ("price",)
    unknown = sql.TableDefinition(primary_key=sql.PrimaryKey(("action",)))
    with pytest.raises(ValidationError, match="PRIMARY KEY names 'action', which is no column"):
        session.run(like(("EXCLUDING", "CONSTRAINTS"), definition=unknown))


def test_like_refuses_a_column_that_both_tables_have(session: Session) -> None:
    session.run(bids())
    twice = sql.TableDefinition((sql.ColumnDefinition("price", IntType()),))
    with pytest.raises(ValidationError, match="has a column 'price' too"):
        session.run(like(definition=twice))


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        (
            sql.TableDefinition(
                (sql.ColumnDefinition("a", IntType()), sql.ColumnDefinition("a", IntType()))
            ),
            "2 columns of the name 'a'",
        ),
        (
            sql.TableDefinition(
                (sql.ColumnDefinition("key", IntType()),), (), sql.PrimaryKey(("keys",))
            ),
            "PRIMARY KEY names 'keys'.*did you mean 'key'",
        ),
        (
            sql.TableDefinition(
                (sql.ColumnDefinition("a", IntType()),), (), sql.PrimaryKey(("a",), enforced=True)
            ),
            "NOT ENFORCED",
        ),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    session: Session, definition: sql.TableDefinition, problem: str
) -> None:
    with pytest.raises(ValidationError, match=problem):
        session.run(bids(definition=definition))


def test_columns_are_added_modified_renamed_and_dropped(session: Session) -> None:
    session.run(bids())
    added = sql.ColumnChange(sql.ColumnDefinition("bidder", BigIntType()), after="auction")
    session.run(sql.AlterSchema("ADD", name("bids"), (added,)))
    session.run(sql.AlterRenameColumn(name("bids"), "bidder", "who"))
    first = sql.ColumnChange(sql.ColumnDefinition("who", IntType()), first=True)
    session.run(sql.AlterSchema("MODIFY", name("bids"), (first,)))
    described = session.rows(sql.Describe("TABLE", name("bids")))
    assert [row[:2] for row in described][:2] == [("who", "INT"), ("auction", "BIGINT")]
    session.run(sql.AlterDrop(name("bids"), ("who",)))
    assert session.rows(sql.Show("COLUMNS", name("bids"), "who")) == []


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ("price", "'twice' is computed from it"),
        ("at", "the WATERMARK uses it"),
        ("auction", "the PRIMARY KEY has it"),
        ("prise", "did you mean 'price'"),
    ],
)
def test_a_column_that_something_needs_is_not_dropped(
    session: Session, column: str, problem: str
) -> None:
    session.run(bids())
    with pytest.raises(ValidationError, match=problem):
        session.run(sql.AlterDrop(name("bids"), (column,)))


def test_options_are_set_and_reset(session: Session) -> None:
    session.run(bids())
    session.run(sql.AlterOptions("TABLE", name("bids"), (("topic", "a"),)))
    session.run(sql.AlterOptions("TABLE", name("bids"), (), ("properties.sasl.password",)))
    found = session.manager.find_table(["bids"])
    assert found is not None
    assert isinstance(found[1], CatalogTable)
    assert found[1].options == {"connector": "kafka", "topic": "a"}


def test_a_view_keeps_its_meaning_when_another_database_is_current(session: Session) -> None:
    session.run(bids())
    text = "CREATE VIEW v AS SELECT price AS a FROM bids"
    table = TableReference(Identifier(("bids",), span=Span(40, 44)))
    query = Select((SelectItem(name("price"), "a"),), table)
    session.run(sql.CreateView(name("v"), query, text[17:]), text)
    found = session.manager.find_table(["v"])
    assert found is not None
    assert isinstance(found[1], CatalogView)
    full = "`default_catalog`.`default_database`.`bids`"
    assert found[1].expanded_query == f"SELECT price AS a FROM {full}"
    assert session.rows(sql.Show("VIEWS")) == [("v",)]
    assert session.rows(sql.Show("CREATE VIEW", name("v"))) == [
        (
            "CREATE VIEW `default_catalog`.`default_database`.`v` (\n  `a`\n)\n"
            f"AS SELECT price AS a FROM {full}\n",
        )
    ]
    with pytest.raises(CatalogError, match="is a view: DROP VIEW it"):
        session.run(sql.Drop("TABLE", name("v")))


def test_databases_and_catalogs_are_made_used_and_dropped(session: Session) -> None:
    session.run(sql.CreateDatabase(name("shop")))
    session.run(sql.CreateCatalog("mine", (("type", "generic_in_memory"),)))
    assert session.rows(sql.Show("DATABASES")) == [("default_database",), ("shop",)]
    assert session.rows(sql.Show("CATALOGS")) == [("default_catalog",), ("mine",)]
    session.run(sql.Use("DATABASE", (name("shop"),)))
    session.run(bids())
    assert session.manager.find_table(["default_catalog", "shop", "bids"]) is not None
    with pytest.raises(CatalogError, match="current database"):
        session.run(sql.Drop("DATABASE", name("shop")))
    session.run(sql.Use("CATALOG", (name("mine"),)))
    assert session.rows(sql.Show("CURRENT DATABASE")) == [("default",)]
    with pytest.raises(CatalogError, match="CASCADE"):
        session.run(sql.Drop("DATABASE", name("default_catalog.shop")))
    session.run(sql.Drop("DATABASE", name("default_catalog.shop"), cascade=True))


def test_names_are_filtered_by_like(session: Session) -> None:
    for each in ("bids", "asks", "Bids2"):
        session.run(bids(name=name(each)))
    assert session.rows(sql.Show("TABLES", pattern="b%")) == [("bids",)]
    assert session.rows(sql.Show("TABLES", pattern="b%", is_ilike=True)) == [("Bids2",), ("bids",)]
    assert session.rows(sql.Show("TABLES", pattern="%ids_", is_negated=True)) == [
        ("asks",),
        ("bids",),
    ]


def test_a_table_is_renamed_but_not_moved(session: Session) -> None:
    session.run(bids())
    session.run(sql.AlterRename("TABLE", name("bids"), name("offers")))
    assert session.rows(sql.Show("TABLES")) == [("offers",)]
    session.run(sql.AlterRename("TABLE", name("bids"), name("x"), if_exists=True))
    with pytest.raises(ValidationError, match="only renamed"):
        session.run(sql.AlterRename("TABLE", name("offers"), name("shop.offers")))
