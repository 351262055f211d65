"""A column of values that come back exactly: one of the declared type, and beside it one of pickles
for the values which that does not hold.

A value that the typed column holds exactly stands only there. Any other is pickled; then the typed
column has an equal value, if there is one (``1`` in a column of floats is ``1.0``), and else null.
So whoever reads only the typed column sees what it can hold, and a job that restores gets back what
it had."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from flinkpy.columns.values.exact_arrays import array_of
from flinkpy.common.typeinfo import TypeInformation
from flinkpy.core.program import code
from flinkpy.state.canonical.typed_values import column_type, holds, values_of

Loads: TypeAlias = Callable[[bytes], Any]

PICKLED = "_pickled"  # behind the name of the typed column
_PICKLE_TROUBLE = (pickle.PicklingError, AttributeError, TypeError)


class ExactColumn:
    """The two columns ``name`` and ``name_pickled``, of which the first is not there if values of
    the type have no column.

    >>> from flinkpy.common.typeinfo import Types
    >>> column = ExactColumn("value", Types.DOUBLE(), "the state")
    >>> floats, pickles = column.arrays([2.5, 1, "a"])
    >>> floats.to_pylist(), [each is not None for each in pickles.to_pylist()]
    ([2.5, 1.0, None], [False, True, True])
    >>> column.values([floats, pickles])
    [2.5, 1, 'a']
    """

    def __init__(self, name: str, type_info: TypeInformation | None, what: str) -> None:
        self.name, self._what = name, what
        kind = column_type(type_info)
        self.type_info = None if kind is None else type_info
        self._kind = kind
        self._holds = None if kind is None or type_info is None else holds(type_info)
        self.fields = [] if kind is None else [pa.field(name, kind)]
        self.fields.append(pa.field(name + PICKLED, pa.binary()))

    def arrays(self, values: Sequence[Any]) -> list[Any]:
        """The columns of these values. ProgramError for a value that cannot be pickled."""
        if self._holds is None:
            return [pa.array([self._pickled(value) for value in values], pa.binary())]
        held = list(map(self._holds, values))
        if all(held):
            return [array_of(values, self._kind), pa.nulls(len(values), pa.binary())]
        others = iter(self._equals([value for value, is_held in zip(values, held) if not is_held]))
        typed = [value if is_held else next(others) for value, is_held in zip(values, held)]
        pickles = [
            None if is_held else self._pickled(value) for value, is_held in zip(values, held)
        ]
        return [array_of(typed, self._kind), pa.array(pickles, pa.binary())]

    def _equals(self, values: list[Any]) -> list[Any]:
        """Each value if the column has an equal one, else None."""
        return (
            values
            if self._fit(values)
            else [value if self._fit([value]) else None for value in values]
        )

    def _fit(self, values: list[Any]) -> bool:
        try:
            array_of(values, self._kind)
        except (ValueError, LookupError, TypeError, ArithmeticError):
            return False
        return True

    def _pickled(self, value: object) -> bytes:
        try:
            return pickle.dumps(value, 5)
        except _PICKLE_TROUBLE:
            return code.dumps_state(value, self._what)

    def values(self, arrays: Sequence[Any], loads: Loads = code.loads) -> list[Any]:
        """The values of what ``arrays`` gave; ``loads`` unpickles."""
        pickles = arrays[-1]
        if self.type_info is None:
            return [loads(data) for data in pickles.to_pylist()]
        typed = values_of(arrays[0], self.type_info)
        if pickles.null_count == len(pickles):
            return typed
        return [
            value if data is None else loads(data)
            for value, data in zip(typed, pickles.to_pylist())
        ]
