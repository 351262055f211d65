"""An entry of the table of functions: what it takes, what it gives, and what plans may do with
it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from flinkpy.common.logical_types.logical_type import LogicalType
from flinkpy.sql.functions.argument_kinds import Kind
from flinkpy.sql.functions.function_port import Argument, FunctionKind, Signature
from flinkpy.sql.functions.refused_calls import refused_call
from flinkpy.sql.functions.result_rules import FittedCall, Nulls, ResultRule, always

Types: TypeAlias = "tuple[LogicalType, ...]"
# What arguments become that must fit one another: None if they do not.
Together: TypeAlias = Callable[[Types], "Types | None"]


@dataclass(frozen=True)
class Shape:
    """One way to call a function: the kinds of its arguments, and ``more`` of one kind behind them.
    ``together`` casts arguments to what they have in common. ``result`` stands for the function's
    own where this way gives something else."""

    kinds: tuple[Kind, ...] = ()
    more: Kind | None = None
    together: Together | None = None
    result: ResultRule | None = None

    def takes(self, count: int) -> bool:
        """Whether it may have so many arguments."""
        return count == len(self.kinds) or (self.more is not None and count > len(self.kinds))

    def kind_at(self, index: int) -> Kind:
        """What stands at this place, from 0."""
        if index < len(self.kinds):
            return self.kinds[index]
        assert self.more is not None
        return self.more

    def fitted(self, arguments: Sequence[Argument]) -> Types | None:
        """The types that the arguments are cast to; None if they do not fit."""
        if not self.takes(len(arguments)):
            return None
        types: list[LogicalType] = []
        for index, each in enumerate(arguments):
            fitted = self.kind_at(index).fitted(each)
            if fitted is None:
                return None
            types.append(fitted)
        return tuple(types) if self.together is None else self.together(tuple(types))

    @property
    def texts(self) -> tuple[str, ...]:
        """What stands at each place, as errors and documentation write it."""
        more = () if self.more is None else (f"{self.more.text}...",)
        return (*(each.text for each in self.kinds), *more)


@dataclass(frozen=True)
class Traits:
    """``can_fail``: a value of the right type may be an error. ``deterministic``: equal arguments
    give equal results. ``dynamic``: BATCH takes one value for a whole query, as for CURRENT_DATE.
    ``monotonic``: it grows with its first argument (or stays), so that a column in order stays in
    order."""

    can_fail: bool = False
    deterministic: bool = True
    dynamic: bool = False
    monotonic: bool = False


PLAIN = Traits()


@dataclass(frozen=True)
class BuiltInFunction:
    """A function of SQL. ``python_name`` is that of the Table API, empty if it has none."""

    name: str
    python_name: str
    shapes: tuple[Shape, ...]
    result: ResultRule
    nulls: Nulls = Nulls.IF_ANY
    kind: FunctionKind = FunctionKind.SCALAR
    traits: Traits = PLAIN

    @property
    def can_fail(self) -> bool:
        return self.traits.can_fail

    @property
    def deterministic(self) -> bool:
        return self.traits.deterministic

    def bind(self, arguments: Sequence[Argument], options: Mapping[str, object]) -> Signature:
        """The signature by the first shape that fits. Raises ValidationError if none does."""
        for shape in self.shapes:
            fitted = shape.fitted(arguments)
            if fitted is None:
                continue
            call = FittedCall(
                fitted,
                tuple(each.type for each in arguments),
                tuple(each.constant for each in arguments),
                options,
            )
            result = (shape.result or self.result)(call)
            if result is not None:
                return Signature(fitted, self.nulls.applied(result, fitted))
        raise refused_call(self.name, self.shapes, arguments)


def function(
    name: str,
    python_name: str,
    shapes: Sequence[Shape | Sequence[Kind]],
    result: ResultRule | LogicalType,
    nulls: Nulls = Nulls.IF_ANY,
    *,
    kind: FunctionKind = FunctionKind.SCALAR,
    traits: Traits = PLAIN,
) -> BuiltInFunction:
    """An entry as the tables write it: a sequence of kinds is a shape, a type is the result of each
    call."""
    return BuiltInFunction(
        name,
        python_name,
        tuple(each if isinstance(each, Shape) else Shape(tuple(each)) for each in shapes),
        always(result) if isinstance(result, LogicalType) else result,
        nulls,
        kind,
        traits,
    )
