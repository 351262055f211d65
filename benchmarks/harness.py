"""Runs two things in turn and compares them: on a noisy machine, the ratio of two runs in a row is
steadier than either figure."""

from __future__ import annotations

import gc
import json
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ENOUGH_PAIRS = 8  # for quartiles


@dataclass(frozen=True)
class Comparison:
    """Medians of both sides in ``unit`` (more is better, unless the unit is a time), and the median
    of the ratios pair by pair. With enough pairs, also the quartiles of the ratios: half of the
    pairs lie between them."""

    name: str
    unit: str
    ours: float
    theirs: float
    ratio: float
    target: float | None = None
    note: str = ""
    quarters: tuple[float, float] | None = None

    def __str__(self) -> str:
        reached = (
            ""
            if self.target is None
            else (
                f"   target {self.target:g}: "
                f"{'reached' if self.ratio >= self.target else 'NOT REACHED'}"
            )
        )
        digits = 0 if self.ours >= 100 else 2
        figures = f"{self.ours:>14,.{digits}f} {self.unit:<10} bare {self.theirs:>14,.{digits}f}"
        spread = "" if self.quarters is None else " ({:.2f} to {:.2f})".format(*self.quarters)
        return f"{self.name:<34} {figures}   ratio {self.ratio:5.2f}{spread}{reached}   {self.note}"


def compare(
    name: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    *,
    unit: str = "records/s",
    target: float | None = None,
    rounds: int = 5,
    note: str = "",
) -> Comparison:
    """Runs both in turn, ours first, ``rounds`` times after one warm-up. Each run returns its
    figure."""
    return medians(name, in_turn((ours, theirs), rounds), unit, target, note)


def in_turn(runs: Sequence[Callable[[], float]], rounds: int) -> list[tuple[float, ...]]:
    """Returns the figures of each round, in which every run has its turn. One round before them is
    the warm-up."""
    for run in runs:
        run()
    return [tuple(_after_collecting(run) for run in runs) for _ in range(rounds)]


def _after_collecting(run: Callable[[], float]) -> float:
    gc.collect()
    return run()


def medians(
    name: str,
    pairs: Sequence[tuple[float, ...]],
    unit: str,
    target: float | None = None,
    note: str = "",
) -> Comparison:
    """Prints and returns the comparison of figures measured in pairs."""
    ratios = [a / b for a, b in pairs]
    lower, middle, upper = statistics.quantiles(ratios, n=4) if len(pairs) > 1 else ratios * 3
    ours, theirs = (statistics.median(side) for side in zip(*pairs))
    result = Comparison(
        name,
        unit,
        ours,
        theirs,
        middle,
        target,
        note,
        (lower, upper) if len(pairs) >= ENOUGH_PAIRS else None,
    )
    print(result, flush=True)
    return result


def save(results: list[Comparison], path: str | None) -> None:
    """Appends the results to a JSON-lines file, if ``path`` names one."""
    if path:
        with Path(path).open("a") as file:
            for result in results:
                file.write(json.dumps(asdict(result)) + "\n")


def quick() -> bool:
    """Whether ``--quick`` was given: small inputs and few rounds (a smoke test, no figures to
    quote)."""
    return "--quick" in sys.argv
