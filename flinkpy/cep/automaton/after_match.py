"""The skip strategy: which matches a match drops."""

from __future__ import annotations

from flinkpy.cep.automaton.partial_matches import CELL, FIRST, NAME, NUMBER, Cell, Run, cells_of
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

    def after(
        self, runs: list[Run], complete: list[Run]
    ) -> tuple[list[Run], list[Run], list[Cell]]:
        """The partial and the complete matches that are left, and the last cells of the matches
        that are given now."""
        if len(complete) > 1:
            complete = sorted(complete, key=_order)
        if not self.skip.skips:
            return runs, [], [run[CELL] for run in complete]
        given: list[Cell] = []
        while complete:
            first = complete[0]
            if runs and first[FIRST][NUMBER] > runs[0][FIRST][NUMBER]:
                break
            del complete[0]
            least = self._least(first)
            if least is not None:
                runs = [run for run in runs if run[FIRST][NUMBER] >= least]
                complete = [run for run in complete if run[FIRST][NUMBER] >= least]
            given.append(first[CELL])
        return runs, complete, given

    def _least(self, match: Run) -> int | None:
        """The number of the first event that another match may begin with; None if any may."""
        kind = self.skip.kind
        if kind is SkipKind.TO_NEXT:
            return match[FIRST][NUMBER] + 1
        if kind is SkipKind.PAST_LAST_EVENT:
            return match[CELL][NUMBER] + 1
        numbers = [
            cell[NUMBER] for cell in cells_of(match[CELL]) if cell[NAME] == self.skip.pattern_name
        ]
        if not numbers:
            if self.skip.throws_on_miss:
                raise SkipError(f"{self.skip!r}: the match has no event of that name")
            return None
        found = numbers[0] if kind is SkipKind.TO_LAST else numbers[-1]
        if self.skip.throws_on_miss and found == match[FIRST][NUMBER]:
            raise SkipError(
                f"{self.skip!r}: that is the first event of the match, so the same match would be "
                "found for ever"
            )
        return found


def _order(run: Run) -> int:
    return run[FIRST][NUMBER]
