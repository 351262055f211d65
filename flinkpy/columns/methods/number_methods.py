"""The methods of expressions for numbers."""

from __future__ import annotations

from flinkpy.columns.methods.expression_base import E, ExpressionBase
from flinkpy.core.errors import ProgramError


class NumberMethods(ExpressionBase[E]):
    """Methods of numbers."""

    __slots__ = ()

    @property
    def abs(self) -> E:
        return self._call("abs")

    @property
    def sign(self) -> E:
        """-1, 0 or 1, in the type of the value."""
        return self._call("sign")

    @property
    def sqrt(self) -> E:
        return self._call("sqrt")

    @property
    def exp(self) -> E:
        return self._call("exp")

    @property
    def ln(self) -> E:
        """The natural logarithm; minus infinity for zero, NaN for negative numbers."""
        return self._call("ln")

    def round(self, places: int = 0) -> E:
        """The value rounded to ``places`` decimal places, halves away from zero. Raises
        ProgramError if ``places`` is no integer."""
        if isinstance(places, bool) or not isinstance(places, int):
            raise ProgramError(f"round() takes a number of decimal places, this is {places!r}")
        return self._call("round", places=places)

    def __round__(self, places: int = 0) -> E:
        raise ProgramError(
            "Python's round() takes halves to the even neighbour; write "
            f"{self!r}.round({places or ''}), which takes them away from "
            "zero, as in SQL"
        )

    @property
    def is_nan(self) -> E:
        """Whether the number is NaN; null for null."""
        return self._call("is_nan")

    def __abs__(self) -> E:
        return self.abs
