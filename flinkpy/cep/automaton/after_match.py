"""The skip strategy: which matches a match drops."""

from __future__ import annotations

from collections.abc import Iterator

from flinkpy.cep.automaton.partial_matches import Cell, EventId, Run, RunsOfKey, cells_of
from flinkpy.cep.skip import AfterMatchSkipStrategy, SkipKind
from flinkpy.core.errors import FlinkpyError


class SkipError(FlinkpyError):
    """A match has no event that the skip strategy could skip to."""


class Completion:
    """Puts complete matches in order and applies the skip strategy.

    The earliest match comes first. Of several that begin with the same event, that one whose path
    was taken first; Flink gives them in the order of its heap. With a strategy that skips, a match
    waits while a partial match has begun before it."""

    def __init__(self, skip: AfterMatchSkipStrategy) -> None:
        self.skip = skip

    def after(self, key: RunsOfKey, found: list[Run]) -> Iterator[Cell | None]:
        """The last cells of the matches that are given now. Changes what is kept for the key."""
        if found:
            key.complete = sorted([*key.complete, *found], key=lambda run: run.start)
        while key.complete:
            first = key.complete[0]
            if self.skip.skips and key.runs and first.start > key.runs[0].start:
                return
            del key.complete[0]
            dropped = self._first_kept(first)
            if dropped is not None:
                key.runs = [run for run in key.runs if run.start >= dropped]
                key.complete = [run for run in key.complete if run.start >= dropped]
            yield first.cell

    def _first_kept(self, match: Run) -> EventId | None:
        """The first event that another match may still begin with; None if any may."""
        kind = self.skip.kind
        if kind is SkipKind.NO_SKIP:
            return None
        if kind is SkipKind.TO_NEXT:
            return _behind(match.start)
        if kind is SkipKind.PAST_LAST_EVENT:
            return None if match.cell is None else _behind(match.cell.id)
        name = self.skip.pattern_name
        ids = [cell.id for cell in cells_of(match.cell) if cell.name == name]
        if not ids:
            if self.skip.throws_on_miss:
                raise SkipError(f"{self.skip!r}: the match has no event of that name")
            return None
        found = ids[0] if kind is SkipKind.TO_LAST else ids[-1]
        if self.skip.throws_on_miss and found == match.start:
            raise SkipError(
                f"{self.skip!r}: that is the first event of the match, so the same match would be "
                "found for ever"
            )
        return found


def _behind(event_id: EventId) -> EventId:
    return event_id[0], event_id[1] + 1
