"""SHOW CREATE: the statement that makes the object again."""

from __future__ import annotations

from collections.abc import Mapping

from flinkpy.common.logical_types.sql_quotes import quoted_name, quoted_text
from flinkpy.core.secrets.hidden_secrets import shown_value
from flinkpy.sql.catalog.catalog_port import CatalogOrigin, CatalogTable, CatalogView, ObjectPath
from flinkpy.sql.syntax.expression_text import expression_text
from flinkpy.sql.syntax.statements import (
    AnyColumn,
    ComputedColumn,
    MetadataColumn,
    PrimaryKey,
    WatermarkDefinition,
)


def create_table_text(
    path: ObjectPath, table: CatalogTable, *, temporary: bool = False, hides_secrets: bool = True
) -> str:
    """``CREATE TABLE ...`` as Flink lays it out. Secrets are hidden unless it is for a catalog."""
    parts = [column_text(column) for column in table.columns]
    parts += [watermark_text(each) for each in table.watermarks]
    if table.primary_key is not None:
        parts.append(key_text(table.primary_key))
    word = "TEMPORARY TABLE" if temporary else "TABLE"
    lines = [f"CREATE {word} {path} (", ",\n".join(f"  {part}" for part in parts), ")"]
    if table.comment:
        lines.append(f"COMMENT {quoted_text(table.comment)}")
    if table.partition_keys:
        lines.append(f"PARTITIONED BY ({', '.join(map(quoted_name, table.partition_keys))})")
    if table.options:
        lines += ["WITH (", options_text(table.options, hides_secrets), ")"]
    return "\n".join(lines) + "\n"


def create_view_text(path: ObjectPath, view: CatalogView, *, temporary: bool = False) -> str:
    """``CREATE VIEW ... AS`` with the query's full names."""
    word = "TEMPORARY VIEW" if temporary else "VIEW"
    columns = ",\n".join(f"  {quoted_name(name)}" for name in view.schema.names)
    comment = f"\nCOMMENT {quoted_text(view.comment)}" if view.comment else ""
    return f"CREATE {word} {path} (\n{columns}\n){comment}\nAS {view.expanded_query}\n"


def create_catalog_text(name: str, origin: CatalogOrigin) -> str:
    """``CREATE CATALOG ...``."""
    comment = f"COMMENT {quoted_text(origin.comment)}\n" if origin.comment else ""
    options = f"WITH (\n{options_text(origin.options, True)}\n)\n" if origin.options else ""
    return f"CREATE CATALOG {quoted_name(name)}\n{comment}{options}"


def column_text(column: AnyColumn) -> str:
    """A column as it is declared."""
    comment = f" COMMENT {quoted_text(column.comment)}" if column.comment else ""
    return f"{quoted_name(column.name)} {_of_column(column)}{comment}"


def _of_column(column: AnyColumn) -> str:
    if isinstance(column, ComputedColumn):
        return f"AS {expression_text(column.value)}"
    if isinstance(column, MetadataColumn):
        return f"{column.type} {metadata_text(column)}"
    return str(column.type)


def metadata_text(column: MetadataColumn) -> str:
    """What stands behind the type of a metadata column."""
    key = "" if column.key is None else f" FROM {quoted_text(column.key)}"
    return f"METADATA{key}{' VIRTUAL' if column.is_virtual else ''}"


def watermark_text(watermark: WatermarkDefinition) -> str:
    column = expression_text(watermark.column)
    return f"WATERMARK FOR {column} AS {expression_text(watermark.strategy)}"


def key_text(key: PrimaryKey) -> str:
    name = "" if key.name is None else f"CONSTRAINT {quoted_name(key.name)} "
    return f"{name}PRIMARY KEY ({', '.join(map(quoted_name, key.columns))}) NOT ENFORCED"


def options_text(options: Mapping[str, str], hides_secrets: bool) -> str:
    """One line an option."""
    return ",\n".join(
        f"  {quoted_text(key)} = {quoted_text(shown_value(key, value) if hides_secrets else value)}"
        for key, value in options.items()
    )
