"""What the methods of expressions make expressions with, and checks of their arguments."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Generic, TypeVar

from flinkpy.core.errors import ProgramError

E = TypeVar("E")


class ExpressionBase(Generic[E]):
    """Makes expressions of type ``E`` out of this one."""

    __slots__ = ()

    @abstractmethod
    def _call(self, function: str, *arguments: Any, **options: Any) -> E:
        """A function of this expression and others, with constant options."""

    @abstractmethod
    def _aggregate(self, kind: str, **options: Any) -> E:
        """An aggregate of this expression."""


def text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ProgramError(f"{where} takes text, this is {value!r:.80}")
    return value


def name(value: object, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise ProgramError(f"{where} takes text, this is {value!r:.80}")
    return value


def whole(value: object, where: str, least: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ProgramError(f"{where} takes a whole number from {least} on, this is {value!r:.80}")
    return value
