"""The tables that the tests of changes query: some that only grow, some whose rows change, and
tables that take changes of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from flinkpy.common.changelog_mode import ALL_CHANGES, INSERT_ONLY, ChangelogMode
from flinkpy.sql.binding.binding_context import BindingContext
from flinkpy.sql.catalog.catalog_port import (
    CatalogTable,
    ObjectPath,
    SinkAbilities,
    SourceAbilities,
)
from flinkpy.sql.functions.built_in_functions import built_in_functions
from flinkpy.sql.plans.physical_text import physical_text
from tests.sql.planning import Session, parsed_query, session_of

TABLES = """
CREATE TABLE orders (
    id BIGINT, customer BIGINT, product STRING, amount INT, ts TIMESTAMP(3), proc AS PROCTIME(),
    WATERMARK FOR ts AS ts
) WITH ('connector' = 'values');
CREATE TABLE items (id BIGINT, product STRING, price INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'values');
CREATE TABLE customers (
    id BIGINT, name STRING, country STRING, age INT, PRIMARY KEY (id) NOT ENFORCED
) WITH ('connector' = 'values');
CREATE TABLE payments (
    order_id BIGINT, paid INT, paid_at TIMESTAMP(3), WATERMARK FOR paid_at AS paid_at
) WITH ('connector' = 'values');
CREATE TABLE accounts (id BIGINT, owner STRING, balance INT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'values');
CREATE TABLE all_sink (k BIGINT, s STRING, n BIGINT) WITH ('connector' = 'values');
CREATE TABLE all_sink_pk (k BIGINT, s STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'values');
CREATE TABLE upsert_sink (k BIGINT, s STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'values');
CREATE TABLE upsert_sink2 (k BIGINT, s STRING, n BIGINT, PRIMARY KEY (k, s) NOT ENFORCED)
WITH ('connector' = 'values');
CREATE TABLE append_sink (k BIGINT, s STRING, n BIGINT) WITH ('connector' = 'values');
"""
SOURCES = {"customers": ALL_CHANGES, "payments": ALL_CHANGES, "accounts": ChangelogMode.upsert()}
SINKS = {
    "all_sink": ALL_CHANGES,
    "all_sink_pk": ALL_CHANGES,
    "upsert_sink": ChangelogMode.upsert(),
    "upsert_sink2": ChangelogMode.upsert(),
}


@dataclass(frozen=True)
class ChangingSession(Session):
    """A session in STREAMING whose tables may change."""

    is_batch: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def context(self) -> BindingContext:
        return BindingContext(self, built_in_functions(), self, parsed_query, self.options)

    def source_abilities(self, path: ObjectPath, table: CatalogTable) -> SourceAbilities:
        return SourceAbilities(
            changes=SOURCES.get(path.name, INSERT_ONLY), takes_projection=True, takes_filters=True
        )

    def sink_abilities(self, path: ObjectPath, table: CatalogTable) -> SinkAbilities:
        return SinkAbilities(changes=SINKS.get(path.name, INSERT_ONLY))

    def text(self, statement: str) -> str:
        """The physical plan with the kinds of rows."""
        return physical_text(self.plan(statement).physical, with_kinds=True)


_CATALOG = session_of(TABLES).tables


def changing_session(options: Mapping[str, str] | None = None) -> ChangingSession:
    """The tables above."""
    return ChangingSession(_CATALOG, options=options or {})
