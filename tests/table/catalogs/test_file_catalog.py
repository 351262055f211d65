"""Catalogs in folders: what one session declares, others read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flinkpy.common.configuration import Configuration
from flinkpy.sql.sql_errors import CatalogError, ValidationError
from flinkpy.table import DataTypes, EnvironmentSettings, Schema, TableEnvironment
from flinkpy.table.catalog import (
    CatalogBaseTable,
    CatalogDatabase,
    CatalogDescriptor,
    CatalogFunction,
    FileCatalog,
    GenericInMemoryCatalog,
    ObjectPath,
)
from flinkpy.table.catalogs.file_catalog import FileCatalog as FileCatalogPort
from flinkpy.testing.simulation.simulated_file_store import SimulatedFileStore


def session(path: Path) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(f"CREATE CATALOG lake WITH ('type' = 'file', 'path' = '{path}')")
    tables.use_catalog("lake")
    return tables


def rows(tables: TableEnvironment, statement: str) -> list[tuple[object, ...]]:
    return [tuple(row) for row in tables.execute_sql(statement).collect()]


ORDERS = """
    CREATE TABLE orders (
      id BIGINT COMMENT 'its number', `the price` DECIMAL(10, 2) NOT NULL,
      lines ARRAY<ROW<sku STRING NOT NULL, n INT>>, ts TIMESTAMP_LTZ(3),
      twice AS `the price` * 2, part INT METADATA FROM 'partition' VIRTUAL,
      WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (id) NOT ENFORCED
    ) COMMENT 'what was sold' PARTITIONED BY (id)
    WITH ('connector' = 'upsert-kafka', 'topic' = 'it''s', 'key.format' = 'json', 'value.format' = 'json',
      'properties.bootstrap.servers' = 'b:9092', 'properties.sasl.password' = 'wolf')"""


def test_what_one_session_declares_another_one_reads_and_alters(tmp_path: Path) -> None:
    first, second = session(tmp_path), session(tmp_path)
    first.execute_sql("CREATE DATABASE shop COMMENT 'all' WITH ('owner' = 'Kim')")
    for tables in (first, second):
        tables.execute_sql("USE shop")
    first.execute_sql(ORDERS)
    first.execute_sql("CREATE VIEW dear AS SELECT id FROM orders WHERE `the price` > 100")
    assert second.list_tables() == ["dear", "orders"]
    assert second.list_views() == ["dear"]
    for statement in ("DESCRIBE orders", "SHOW CREATE TABLE orders", "SHOW CREATE VIEW dear"):
        assert rows(first, statement) == rows(second, statement)
    assert "****" in str(rows(second, "SHOW CREATE TABLE orders"))
    assert "wolf" not in str(rows(second, "SHOW CREATE TABLE orders"))
    second.execute_sql("ALTER TABLE orders SET ('topic' = 'sold')")
    second.execute_sql("ALTER TABLE orders RENAME TO sold")
    assert first.list_tables() == ["dear", "sold"]
    assert "'topic' = 'sold'" in str(rows(first, "SHOW CREATE TABLE sold"))
    with pytest.raises(CatalogError, match="did you mean 'sold'"):
        first.execute_sql("DESCRIBE solt")
    first.execute_sql("USE `default`")
    second.execute_sql("USE `default`")
    first.execute_sql("DROP DATABASE shop CASCADE")
    assert second.list_databases() == ["default"]
    second.execute_sql("CREATE DATABASE shop")
    assert first.get_catalog("lake").list_tables("shop") == []


def test_a_table_is_a_json_file_that_people_can_read(tmp_path: Path) -> None:
    tables = session(tmp_path)
    tables.execute_sql("CREATE TABLE `a.b/c` (n INT) WITH ('connector' = 'datagen')")
    [file] = (tmp_path / "tables" / "default").iterdir()
    document = json.loads(file.read_text())
    assert document["kind"] == "TABLE"
    assert "`n` INT" in document["statement"]
    assert session(tmp_path).list_tables() == ["a.b/c"]
    file.write_text(json.dumps({**document, "format": 7}))
    with pytest.raises(CatalogError, match="format 7, which this flinkpy does not know"):
        tables.execute_sql("DESCRIBE `a.b/c`")


def test_of_two_sessions_that_change_a_table_at_once_one_is_told() -> None:
    files = SimulatedFileStore()
    first, second = (FileCatalogPort("lake", files, "lake") for _ in range(2))
    schema = Schema.new_builder().column("n", DataTypes.INT()).build()
    old, new = (
        CatalogBaseTable.create_table(schema, [], {"connector": each})._table
        for each in ("print", "blackhole")
    )
    first.create_table("default", "t", old)
    assert first.get_table("default", "t") == second.get_table("default", "t") == old
    second.alter_table("default", "t", new)
    with pytest.raises(CatalogError, match="another session has changed 't'"):
        first.drop_table("default", "t")
    assert first.get_table("default", "t") == new
    first.drop_table("default", "t")
    second.create_table("default", "t", old)
    assert first.get_table("default", "t") == old


def test_a_program_registers_catalogs_and_uses_their_methods(tmp_path: Path) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.register_catalog("mine", GenericInMemoryCatalog("mine"))
    tables.register_catalog("lake", FileCatalog("lake", str(tmp_path)))
    descriptor = CatalogDescriptor.of("made", Configuration({"type": "generic_in_memory"}), "x")
    tables.create_catalog("made", descriptor)
    assert tables.list_catalogs() == ["default_catalog", "lake", "made", "mine"]
    for name in ("mine", "lake"):
        catalog = tables.get_catalog(name)
        catalog.create_database("shop", CatalogDatabase.create_instance({"a": "b"}, "all"))
        catalog.create_database("shop", CatalogDatabase.create_instance({}), True)
        assert catalog.get_database("shop").get_properties() == {"a": "b"}
        path = ObjectPath.from_string("shop.t")
        schema = Schema.new_builder().column("n", DataTypes.INT()).primary_key("n").build()
        catalog.create_table(path, CatalogBaseTable.create_table(schema, comment="c"))
        assert catalog.get_table(path).get_comment() == "c"
        assert "PRIMARY KEY (`n`)" in str(catalog.get_table(path).get_unresolved_schema())
        catalog.create_function(ObjectPath("shop", "f"), CatalogFunction("a.b"))
        assert catalog.get_function(ObjectPath("shop", "f")).get_class_name() == "a.b"
        catalog.rename_table(path, "u")
        assert catalog.list_tables("shop") == ["u"]
        with pytest.raises(CatalogError, match=r"shop\.uu; did you mean 'u'"):
            catalog.get_table(ObjectPath("shop", "uu"))
    assert "COMMENT 'x'" in str(rows(tables, "SHOW CREATE CATALOG made"))
    assert ("type", "generic_in_memory") in rows(tables, "DESCRIBE CATALOG made")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("'type' = 'fil'", "no catalog of the type 'fil'; did you mean 'file'"),
        ("'path' = 'x'", "needs the option 'type'"),
        ("'type' = 'file'", "needs the option 'path'"),
        ("'type' = 'file', 'pat' = 'x'", "has no option 'pat'; did you mean 'path'"),
        ("'type' = 'hive'", "no catalog of the type 'hive'"),
    ],
)
def test_options_of_catalogs_are_checked(options: str, problem: str) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    with pytest.raises(ValidationError, match=problem):
        tables.execute_sql(f"CREATE CATALOG c WITH ({options})")


def test_what_only_the_program_knows_is_not_kept_in_files(tmp_path: Path) -> None:
    tables = session(tmp_path)
    table = tables.from_elements([(1,)], ["n"])
    with pytest.raises(CatalogError, match="create a TEMPORARY one"):
        tables.create_view("v", table)


def test_partitions_of_a_table_of_files_are_shown_added_and_dropped(tmp_path: Path) -> None:
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(
        "CREATE TABLE t (n INT, city STRING, y INT) PARTITIONED BY (city, y) WITH "
        f"('connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path}/t')"
    )
    assert rows(tables, "SHOW PARTITIONS t") == []
    tables.execute_sql(
        "INSERT INTO t VALUES (1, 'Oslo', 2024), (2, 'Oslo', 2025), (3, 'Å/b', 2024)"
    ).wait()
    tables.execute_sql("ALTER TABLE t ADD PARTITION (y = 2026, city = 'Oslo')")
    assert rows(tables, "SHOW PARTITIONS t") == [
        ("city=%C3%85%2Fb/y=2024",),
        ("city=Oslo/y=2024",),
        ("city=Oslo/y=2025",),
        ("city=Oslo/y=2026",),
    ]
    assert rows(tables, "SHOW PARTITIONS t PARTITION (city = 'Å/b')") == [
        ("city=%C3%85%2Fb/y=2024",)
    ]
    tables.execute_sql("ALTER TABLE t DROP PARTITION (city = 'Oslo', y = 2024)")
    assert sorted(rows(tables, "SELECT n FROM t")) == [(2,), (3,)]
    for statement, problem in (
        ("ALTER TABLE t ADD PARTITION (city = 'Oslo', y = 2026)", "there is a partition"),
        ("ALTER TABLE t DROP PARTITION (city = 'Oslo', y = 1)", "there is no partition"),
        ("ALTER TABLE t DROP PARTITION (city = 'Oslo')", "y is missing"),
        ("SHOW PARTITIONS t PARTITION (town = 'Oslo')", "'town' is no partition key"),
    ):
        with pytest.raises(ValidationError, match=problem):
            tables.execute_sql(statement)
