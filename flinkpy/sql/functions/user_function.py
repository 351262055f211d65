"""Functions of users, as binding sees them: declared types, and a body that only those who run it
look into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flinkpy.common.logical_types.logical_type import LogicalType, NullType, RowType
from flinkpy.sql.functions.argument_kinds import exactly
from flinkpy.sql.functions.built_in_function import Shape
from flinkpy.sql.functions.function_port import Argument, FunctionKind, Signature
from flinkpy.sql.functions.refused_calls import refused_call
from flinkpy.sql.sql_errors import ValidationError


@dataclass(frozen=True)
class UserFunction:
    """A function written in Python. ``result`` is the type of what it gives; of a table function,
    that of its rows. Without ``inputs`` it takes whatever it is given, as PyFlink's functions do
    that declare none. Plans compare functions by name and types, not by their ``body``."""

    name: str
    body: object
    result: LogicalType
    inputs: tuple[LogicalType, ...] | None = None
    kind: FunctionKind = FunctionKind.SCALAR
    deterministic: bool = True

    def __post_init__(self) -> None:
        if self.kind is FunctionKind.TABLE and not isinstance(self.result, RowType):
            raise ValueError(f"the rows of {self.name} have the type of a ROW, not {self.result}")

    @property
    def can_fail(self) -> bool:
        """Whatever users write may raise."""
        return True

    def bind(self, arguments: Sequence[Argument], options: Mapping[str, object]) -> Signature:
        """The signature for these arguments, which are cast to the declared types. Raises
        ValidationError if they do not fit."""
        if self.inputs is None:
            return Signature(self._as_given(arguments), self.result)
        shape = Shape(tuple(map(exactly, self.inputs)))
        fitted = shape.fitted(arguments)
        if fitted is None:
            raise refused_call(self.shown, (shape,), arguments)
        return Signature(fitted, self.result)

    @property
    def shown(self) -> str:
        """The name as users wrote it."""
        return shown_name(self.name)

    def _as_given(self, arguments: Sequence[Argument]) -> tuple[LogicalType, ...]:
        for index, each in enumerate(arguments):
            if isinstance(each.type, NullType):
                raise ValidationError(
                    f"argument {index + 1} of {self.shown} has no type: write CAST(NULL AS type), "
                    "or declare input_types"
                )
        return tuple(each.type for each in arguments)


def inline_name(name: str, number: int) -> str:
    """The name that plans keep of a function that has none in the session."""
    return f"*{name}*" if number == 1 else f"*{name}_{number}*"


def shown_name(name: str) -> str:
    """The name of a function as texts show it.

    >>> shown_name("`default_catalog`.`default_database`.`f`"), shown_name("*f*"), shown_name("*")
    ('f', 'f', '*')
    """
    if name.startswith("`"):
        return name[:-1].rpartition("`.`")[2].replace("``", "`")
    return name[1:-1] if name.startswith("*") and len(name) > 2 else name
