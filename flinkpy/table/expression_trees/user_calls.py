"""Calls of a program's own functions as expressions of tables."""

from __future__ import annotations

from flinkpy.columns.expression import Call, Expression, as_expression
from flinkpy.common.logical_types.logical_type import RowType
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.user_function import UserFunction


class WholeRow(Expression):
    """All columns of a table as one ROW."""

    __slots__ = ("columns",)

    def __init__(self, columns: RowType) -> None:
        self.columns = columns

    def __repr__(self) -> str:
        return f"row({', '.join(self.columns.names)})"


class UserCall(Call):
    """A function over expressions. ``columns`` are other names for what a table function gives."""

    __slots__ = ("columns", "of")

    def __init__(
        self, of: UserFunction, arguments: tuple[object, ...], columns: tuple[str, ...] = ()
    ) -> None:
        super().__init__(of.shown, tuple(map(as_expression, arguments)))
        self.of = of
        self.columns = columns

    @property
    def is_aggregate(self) -> bool:
        """Whether it is computed from many rows."""
        return self.of.kind is FunctionKind.AGGREGATE

    def alias(self, name: str, *extra_names: str) -> Expression:
        """Another name for the value; for a table function, names for the columns that it gives."""
        if self.of.kind is FunctionKind.TABLE or extra_names:
            return UserCall(self.of, self.arguments, (name, *extra_names))
        return super().alias(name, *extra_names)

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.arguments))})"
