"""The columns of a table that a program declares, at PyFlink's module path."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.columns import Expression
from flinkpy.common.logical_types.logical_type import LogicalType, RowType
from flinkpy.core.errors import ProgramError
from flinkpy.sql.catalog.create_texts import column_text, key_text, watermark_text
from flinkpy.sql.syntax.query_tree import Identifier, SqlExpression
from flinkpy.sql.syntax.statements import (
    ColumnDefinition,
    ComputedColumn,
    MetadataColumn,
    PrimaryKey,
    TableDefinition,
    WatermarkDefinition,
)


class Schema:
    """Columns, watermarks and a key, as CREATE TABLE declares them.

    >>> from flinkpy.table import DataTypes
    >>> schema = Schema.new_builder().column("n", DataTypes.INT()).primary_key("n").build()
    >>> print(schema)
    (
      `n` INT,
      PRIMARY KEY (`n`) NOT ENFORCED
    )
    """

    def __init__(self, definition: TableDefinition) -> None:
        self.definition = definition

    class Builder:
        """Returned by ``new_builder``."""

        def __init__(self) -> None:
            self._definition = TableDefinition()

        def column(self, column_name: str, data_type: LogicalType | str) -> Schema.Builder:
            """A column that the table stores; its type as a DataType or as SQL writes it."""
            return self._with(ColumnDefinition(column_name, _type(data_type)))

        def column_by_expression(self, column_name: str, expr: Expression | str) -> Schema.Builder:
            """A column that is computed from others."""
            return self._with(ComputedColumn(column_name, _tree(expr)))

        def column_by_metadata(
            self,
            column_name: str,
            data_type: LogicalType | str,
            metadata_key: str | None = None,
            is_virtual: bool = False,
        ) -> Schema.Builder:
            """A column of what the connector knows of a row."""
            return self._with(
                MetadataColumn(column_name, _type(data_type), metadata_key, is_virtual)
            )

        def from_fields(
            self, field_names: Sequence[str], field_data_types: Sequence[LogicalType | str]
        ) -> Schema.Builder:
            """Several columns."""
            if len(field_names) != len(field_data_types):
                raise ProgramError(
                    f"from_fields() got {len(field_names)} names and {len(field_data_types)} types"
                )
            for name, data_type in zip(field_names, field_data_types):
                self.column(name, data_type)
            return self

        def from_row_data_type(self, data_type: LogicalType) -> Schema.Builder:
            """The fields of a ROW as columns."""
            if not isinstance(data_type, RowType):
                raise ProgramError(f"from_row_data_type() takes a ROW, this is {data_type}")
            return self.from_fields(data_type.names, [field.type for field in data_type])

        def from_schema(self, unresolved_schema: Schema) -> Schema.Builder:
            """All parts of another schema."""
            own, other = self._definition, unresolved_schema.definition
            self._definition = TableDefinition(
                own.columns + other.columns,
                own.watermarks + other.watermarks,
                other.primary_key or own.primary_key,
            )
            return self

        def watermark(self, column_name: str, watermark_expr: Expression | str) -> Schema.Builder:
            """Which column has the event time, and how far behind it watermarks are."""
            own = self._definition
            made = WatermarkDefinition(Identifier((column_name,)), _tree(watermark_expr))
            self._definition = TableDefinition(
                own.columns, (*own.watermarks, made), own.primary_key
            )
            return self

        def primary_key(self, *column_names: str) -> Schema.Builder:
            """The columns that name a row."""
            return self._keyed(PrimaryKey(column_names))

        def primary_key_named(self, constraint_name: str, *column_names: str) -> Schema.Builder:
            """The same, and the name of the constraint."""
            return self._keyed(PrimaryKey(column_names, constraint_name))

        def build(self) -> Schema:
            """The schema."""
            return Schema(self._definition)

        def _with(
            self, column: ColumnDefinition | ComputedColumn | MetadataColumn
        ) -> Schema.Builder:
            own = self._definition
            self._definition = TableDefinition(
                (*own.columns, column), own.watermarks, own.primary_key
            )
            return self

        def _keyed(self, key: PrimaryKey) -> Schema.Builder:
            own = self._definition
            self._definition = TableDefinition(own.columns, own.watermarks, key)
            return self

    @staticmethod
    def new_builder() -> Schema.Builder:
        """A builder."""
        return Schema.Builder()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.definition == other.definition

    def __hash__(self) -> int:
        return hash(self.definition)

    def __str__(self) -> str:
        own = self.definition
        parts = [column_text(column) for column in own.columns]
        parts += [watermark_text(each) for each in own.watermarks]
        if own.primary_key is not None:
            parts.append(key_text(own.primary_key))
        return "(\n" + ",\n".join(f"  {part}" for part in parts) + "\n)"


def _type(data_type: LogicalType | str) -> LogicalType:
    if isinstance(data_type, LogicalType):
        return data_type
    if not isinstance(data_type, str):
        raise ProgramError(
            f"a column has a type such as DataTypes.INT() or 'INT', this is {data_type!r:.80}"
        )
    from flinkpy.sql.parsing.parse import parse_type

    return parse_type(data_type)


def _tree(expression: Expression | str) -> SqlExpression:
    if isinstance(expression, str):
        from flinkpy.sql.parsing.parse import parse_expression

        return parse_expression(expression)
    from flinkpy.table.expression_trees.sql_of_expressions import tree_of

    return tree_of(expression)
