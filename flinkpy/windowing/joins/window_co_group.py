"""The window co-group of two streams of rows: all records of a key and window, of both sides, go to
the function together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flinkpy.core.mutability import private_copy
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.base import Work
from flinkpy.operators.functions import method_of
from flinkpy.windowing.joins.aligned_join import AlignedJoinOperator
from flinkpy.windowing.joins.join_loops import Part, by_key


class WindowCoGroupOperator(AlignedJoinOperator):
    """Calls a CoGroupFunction with all records of a key and window at once, even if only one side
    has any."""

    joins = False

    def __init__(
        self,
        function: object,
        key1: KeySpec,
        key2: KeySpec,
        assigner: object,
        allowed_lateness: int = 0,
    ) -> None:
        super().__init__(function, key1, key2, assigner, allowed_lateness)
        method_of(function, "co_group")

    def open(self) -> None:
        super().open()
        self._call = method_of(self.function, "co_group")

    def combine(self, first: list[Part], second: list[Part], timestamp: int) -> Work:
        return self.emit_groups(self._groups(by_key(first), by_key(second)), timestamp)

    def _groups(
        self, firsts: dict[Any, list[Any]], seconds: dict[Any, list[Any]]
    ) -> Iterator[tuple[list[Any], list[Any]]]:
        current, slicing = self.backend.current, self._windows.slicing
        # the records may be in other windows too, or the window may fire again, or they are being
        # saved
        shared = (
            self._copies and (slicing.size > slicing.slide or self.allowed_lateness > 0)
        ) or self.is_being_written
        for key in {**firsts, **seconds}:
            current.key = key
            group = firsts.get(key, []), seconds.get(key, [])
            yield (_copies_of(group[0]), _copies_of(group[1])) if shared else group


def _copies_of(values: list[Any]) -> list[Any]:
    return [private_copy(value) for value in values]
