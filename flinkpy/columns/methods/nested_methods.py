"""The methods of expressions for structs, lists and maps."""

from __future__ import annotations

from flinkpy.columns.methods.expression_base import E, ExpressionBase
from flinkpy.core.errors import ProgramError


class NestedMethods(ExpressionBase[E]):
    """Methods of structs, lists and maps."""

    __slots__ = ()

    def get(self, name_or_index: str | int) -> E:
        """The field of a struct, by name or by position from 0."""
        if (
            isinstance(name_or_index, bool)
            or not isinstance(name_or_index, (str, int))
            or (isinstance(name_or_index, int) and name_or_index < 0)
        ):
            raise ProgramError(
                "get() takes a field's name or its position from 0 on, this is "
                f"{name_or_index!r:.80}"
            )
        return self._call("get", field=name_or_index)

    def at(self, index: object) -> E:
        """The item of a list at a position counted from 1, as in SQL, or the value of a map's key;
        null if there is none. A position below 1 is an error."""
        return self._call("at", index)

    @property
    def cardinality(self) -> E:
        """The number of items of a list, or of entries of a map."""
        return self._call("cardinality")

    def array_contains(self, needle: object) -> E:
        """Whether an item of the list equals the needle; a needle that is null is found among items
        that are null."""
        return self._call("array_contains", needle)
