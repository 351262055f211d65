"""One state of one operator, as it is read from a savepoint: entry by entry, or all of it as a
table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

T = TypeVar("T")


class KeyedEntry(NamedTuple):
    """What a state holds for one key."""

    key: Any
    value: Any


class ReadState(Generic[T]):
    """Iterates over the state's entries, each time from the beginning. ``to_arrow`` and
    ``to_pandas`` give columns, which need a common type of all values: the declared one, or one
    that fits."""

    def __init__(
        self,
        name: str,
        entries: Callable[[], Iterator[T]],
        types: dict[str, TypeInformation | None],
    ) -> None:
        self._name = name
        self._entries = entries
        self._types = types

    def __iter__(self) -> Iterator[T]:
        return self._entries()

    def to_arrow(self) -> pa.Table:
        """A table: ``key`` and ``value`` of keyed and of broadcast state, ``value`` of lists.
        ProgramError if values have no common type; then iterate."""
        import pyarrow as pa

        entries: list[Any] = list(self)
        columns = (
            zip(*entries)
            if len(self._types) > 1 and entries
            else [entries if len(self._types) == 1 else [] for _ in self._types]
        )
        return pa.table(
            {name: self._column(name, list(values)) for name, values in zip(self._types, columns)}
        )

    def to_pandas(self) -> pd.DataFrame:
        """The same as a DataFrame. Raises ProgramError if pandas is not installed."""
        from flinkpy.columns.values.pandas_frames import pandas_frame

        return pandas_frame(self.to_arrow(), "to_pandas()")

    def _column(self, name: str, values: list[Any]) -> Any:
        from flinkpy.columns.values.exact_arrays import array_of
        from flinkpy.columns.values.inference import inferred_type
        from flinkpy.state.canonical.typed_values import column_type

        kind = column_type(self._types[name])
        try:
            return array_of(values, kind, name)
        except (ValueError, LookupError, TypeError, ArithmeticError, AttributeError):
            pass  # not all are of the declared type, or none is declared
        try:
            return array_of(values, inferred_type(values, name), name)
        except (ValueError, LookupError, TypeError, ArithmeticError) as error:
            raise ProgramError(
                f"state {self._name!r} is no table: {error}; iterate over its entries instead"
            ) from error

    def __repr__(self) -> str:
        return f"<ReadState {self._name!r}>"
