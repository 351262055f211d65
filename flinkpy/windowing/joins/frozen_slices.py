"""What a window join over aligned windows holds, as it was at a barrier. Its lists only grow, so
their lengths of then say what was in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from flinkpy.core.clock import Turns
from flinkpy.core.mutability import could_be_mutated, private_copy
from flinkpy.windowing.joins.join_loops import Part

# up to which moment its windows have fired, and its records of both sides by slice; then the
# windows that fire again, if there are some
Saved: TypeAlias = "tuple[int, dict[int, Part]] | tuple[int, dict[int, Part], tuple[int, ...]]"
# a slice, its records of both sides, and how many of each side in front are saved elsewhere
Held: TypeAlias = "tuple[int, tuple[Part, Part], tuple[int, int]]"
# raises an error that names the record whose key cannot be hashed
Explain: TypeAlias = "Callable[[list[Part], TypeError], None]"

_AT_ONCE = 1 << 10  # records between two turns


class FiredUntil(NamedTuple):
    """Up to which moment the windows of a key have fired: the watermark, for keys in ``ahead`` a
    later one. ``again``: the starts of a key's windows that got records since, so they fire
    again."""

    watermark: int
    ahead: Mapping[Any, int]
    again: Mapping[Any, tuple[int, ...]]
    size: int

    def saved(self, key: object) -> Saved:
        """What is saved of the key; it has no records yet."""
        until = max(self.watermark, self.ahead.get(key, self.watermark))
        again = tuple(
            start for start in self.again.get(key, ()) if start + self.size - 1 > self.watermark
        )
        return (until, {}, again) if again else (until, {})


class FrozenSlices:
    """Called when the state is written, in another thread: gives what is saved of each key. From
    then on ``is_read`` says that records may be changed in place."""

    def __init__(self, held: Iterable[Held], fired: FiredUntil, explain: Explain) -> None:
        self._parts = [
            (start, side, part, begin, len(part[0]))
            for start, sides, begins in held
            for side, (part, begin) in enumerate(zip(sides, begins))
        ]
        self._fired, self._explain = fired, explain
        self.is_read = False

    def __call__(self, turns: Turns) -> dict[Any, Saved]:
        by_key: dict[Any, Saved] = {}
        for start, side, (keys, values), begin, count in self._parts:
            for at in range(begin, count, _AT_ONCE):
                end = min(count, at + _AT_ONCE)
                self._add(by_key, start, side, (keys[at:end], values[at:end]))
                turns.give_way()
        self.is_read = True
        return by_key

    def _add(self, by_key: dict[Any, Saved], start: int, side: int, part: Part) -> None:
        keys, values = part
        if could_be_mutated(values):
            values = [private_copy(value) for value in values]
        try:
            for key, value in zip(keys, values):
                found = by_key.get(key)
                if found is None:
                    found = by_key[key] = self._fired.saved(key)
                sides = found[1].get(start)
                if sides is None:
                    sides = found[1][start] = [], []
                sides[side].append(value)
        except TypeError as error:
            self._explain([part], error)
            raise
