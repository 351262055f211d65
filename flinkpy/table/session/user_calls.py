"""Calls of a program's own functions as expressions of tables."""

from __future__ import annotations

from flinkpy.columns.expression import Call, Expression, as_expression
from flinkpy.sql.functions.function_port import FunctionKind
from flinkpy.sql.functions.user_function import UserFunction


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

    def alias(self, name: str, *names: str) -> Expression:
        """Another name for the value; for a table function, names for the columns that it gives."""
        if self.of.kind is FunctionKind.TABLE:
            return UserCall(self.of, self.arguments, (name, *names))
        return super().alias(name)

    def __repr__(self) -> str:
        return f"{self.function}({', '.join(map(repr, self.arguments))})"
