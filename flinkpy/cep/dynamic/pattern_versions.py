"""Which versions of which patterns count, purely.

The highest version of an id counts, and a removal more than an addition of the same version. So
subtasks that get the same updates in different orders end with the same patterns. Of an id that was
removed the version is kept: an older update that comes late must not bring it back."""

from __future__ import annotations

from typing import NamedTuple

from flinkpy.cep.dynamic.pattern_updates import PatternUpdate


class Version(NamedTuple):
    """A version of a pattern."""

    id: str
    number: int


def version_of(update: PatternUpdate) -> Version:
    """The version that an update brings."""
    return Version(update.id, update.version)


class PatternVersions:
    """The last update of each id.

    >>> versions = PatternVersions()
    >>> versions.take(PatternUpdate("a", 2))
    >>> versions.counts(PatternUpdate("a", 1)), versions.counts(PatternUpdate("a", 3))
    (False, True)
    """

    def __init__(self) -> None:
        self._ranks: dict[str, tuple[int, bool]] = {}

    def counts(self, update: PatternUpdate) -> bool:
        """Whether the update changes anything: no as high a version has come before."""
        before = self._ranks.get(update.id)
        return before is None or _rank(update) > before

    def take(self, update: PatternUpdate) -> None:
        """The update is the last one of its id."""
        self._ranks[update.id] = _rank(update)


def _rank(update: PatternUpdate) -> tuple[int, bool]:
    return update.version, update.pattern is None
