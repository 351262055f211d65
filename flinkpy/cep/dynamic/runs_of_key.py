"""What is kept for a key: for each version of a pattern its partial matches."""

from __future__ import annotations

from typing import Any

from flinkpy.cep.automaton.partial_matches import Runs
from flinkpy.cep.dynamic.pattern_versions import Version

UNKNOWN = -1


class RunsOfKey(dict[Version, Runs]):
    """Runs by version. ``wants`` are the bits of the watches for which they wait, and perhaps of
    some for which they waited before; below zero if that has to be found out, because it is not
    saved: bits mean something in this process only."""

    __slots__ = ("wants",)

    def __init__(self, runs: dict[Version, Runs] | None = None, wants: int = 0) -> None:
        super().__init__(runs or {})
        self.wants = wants

    def copy(self) -> RunsOfKey:
        """The same runs, for a snapshot: nobody changes these."""
        return RunsOfKey(self, self.wants)

    def __reduce__(self) -> tuple[Any, ...]:
        """Plain values, so that what is saved does not depend on this class's form."""
        return _restored, ([(*version, runs) for version, runs in self.items()],)


def _restored(saved: list[tuple[str, int, Runs]]) -> RunsOfKey:
    return RunsOfKey({Version(id, number): runs for id, number, runs in saved}, UNKNOWN)
