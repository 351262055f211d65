"""Engine values in memory that are frozen without a copy. The operator reads and writes a mapping,
which is another one after a freeze."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from flinkpy.state.layers.layers import Layers
from flinkpy.state.layers.overlay import View
from flinkpy.state.snapshots.frozen_tables import FrozenEntries, FrozenTable, GroupsOfKeys
from flinkpy.state.state_isolation import not_saved
from flinkpy.state.stored_forms import same

COPIED_AT_ONCE = 1 << 10  # keys, up to which a freeze copies all of them


class LayeredValues:
    """The values of the state ``name``. ``rebind`` is called with the dict to read and write.
    ``copy`` gives a copy of a value, as the engine changes values in place."""

    def __init__(
        self,
        name: str,
        values: dict[Any, Any],
        rebind: Callable[[dict[Any, Any]], None],
        copy: Callable[[Any], Any],
        copied_at_once: int,
    ) -> None:
        self._name, self._copy = name, copy
        self._layers = Layers(name, values, rebind, copy, copied_at_once)

    def after_batch(self) -> None:
        """Some of what a freeze has left to do."""
        if not self._layers.is_settled:
            self._layers.after_batch()

    def freeze(self, groups_of_keys: GroupsOfKeys, shares_keys: bool) -> FrozenTable:
        """The values as they are now. Raises ProgramError for one that cannot be copied."""
        frozen = self._layers.freeze()
        private = partial(_private, self._name, self._copy) if isinstance(frozen, View) else None
        return FrozenEntries(frozen, private, same, groups_of_keys, shares_keys)


def _private(name: str, copy: Callable[[Any], Any], value: object) -> Any:
    try:
        return copy(value)
    except Exception as error:
        raise not_saved(name, error) from error
