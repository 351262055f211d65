"""States on loan: what an operator reads and writes during one batch, where state is kept in a form that only gives and takes whole batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ABSENT: Any = object()  # in the place of a state, for a key that has none


class Lent:
    """The states of a batch's keys. The key of record i has its state at ``states[places[i]]``.

    ``keys`` are the distinct ones in the order of ``states``, ``new`` of them ABSENT when they were lent; ``cells`` is the lender's, None where
    ``keys`` is a list and no array.
    """

    __slots__ = ("cells", "keys", "new", "places", "states")

    def __init__(self, keys: Any, places: Sequence[int], states: list[Any], cells: Any, new: int) -> None:
        self.keys, self.places, self.states, self.cells, self.new = keys, places, states, cells, new

    def entries(self) -> dict[Any, Any]:
        """The states there are, by key."""
        keys = self.keys if self.cells is None else self.keys.tolist()
        return {key: state for key, state in zip(keys, self.states) if state is not ABSENT}
