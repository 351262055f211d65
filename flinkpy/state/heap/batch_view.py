"""The states of one batch's keys, copied out of a store that reads and writes whole batches only.
The operator changes them and commits them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

ABSENT: Any = object()  # the state of a key that has none


class BatchView:
    """The states of a batch's keys. The key of record i has its state at ``states[places[i]]``.

    ``keys`` are the distinct keys in the order of ``states``; ``new`` of them were ABSENT.
    ``cells`` says where the store has them, and is None if ``keys`` is a list and no array."""

    __slots__ = ("cells", "keys", "new", "places", "states")

    def __init__(
        self, keys: Any, places: Sequence[int], states: list[Any], cells: Any, new: int
    ) -> None:
        self.keys = keys
        self.places = places
        self.states = states
        self.cells = cells
        self.new = new

    def entries(self) -> dict[Any, Any]:
        """The states that are not ABSENT, by key."""
        keys = self.keys if self.cells is None else self.keys.tolist()
        return {key: state for key, state in zip(keys, self.states) if state is not ABSENT}
