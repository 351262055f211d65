"""How numbers are spread: what Flink tells of the sizes and durations of checkpoints."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

QUANTILES = (0.5, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True)
class StatsSummary:
    """The least, the greatest and the mean of some numbers, and their ``QUANTILES``; all 0 if there
    are none."""

    least: int = 0
    greatest: int = 0
    mean: int = 0
    quantiles: tuple[float, ...] = (0.0,) * len(QUANTILES)

    @staticmethod
    def of(numbers: Iterable[int]) -> StatsSummary:
        """
        >>> StatsSummary.of([4, 1, 3, 2])
        StatsSummary(least=1, greatest=4, mean=2, quantiles=(2.5, 4.0, 4.0, 4.0, 4.0))
        """
        ordered = sorted(numbers)
        if not ordered:
            return StatsSummary()
        return StatsSummary(
            ordered[0],
            ordered[-1],
            sum(ordered) // len(ordered),
            tuple(_quantile(ordered, each) for each in QUANTILES),
        )


def _quantile(ordered: list[int], share: float) -> float:
    """Between two numbers in proportion to where it falls, as Flink's."""
    position = share * (len(ordered) + 1)
    below = int(position)
    if below < 1:
        return float(ordered[0])
    if below >= len(ordered):
        return float(ordered[-1])
    return ordered[below - 1] + (position - below) * (ordered[below] - ordered[below - 1])


class RunningStats:
    """Statistics of numbers that come one by one. The quantiles are those of the latest ``WINDOW``,
    all else is of all."""

    WINDOW = 1000

    def __init__(self) -> None:
        self._count = self._sum = self._least = self._greatest = 0
        self._latest: deque[int] = deque(maxlen=self.WINDOW)

    def add(self, number: int) -> None:
        self._least = min(self._least, number) if self._count else number
        self._greatest = max(self._greatest, number) if self._count else number
        self._count += 1
        self._sum += number
        self._latest.append(number)

    def summary(self) -> StatsSummary:
        if not self._count:
            return StatsSummary()
        return StatsSummary(
            self._least,
            self._greatest,
            self._sum // self._count,
            StatsSummary.of(self._latest).quantiles,
        )
