"""What lies outside of a simulated job and outlives all of its processes: a system with
transactions, and the causes of functions' failures.

Sources, functions and sinks travel as bytes, so they know their world by name only.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

from flinkpy.core.errors import EngineError
from flinkpy.testing.simulation.programs.standing_rows import Change, standing

_worlds: dict[str, OutsideWorld] = {}


def world_named(name: str) -> OutsideWorld:
    """The world of that name, which is there while ``opened`` runs."""
    return _worlds[name]


def exchange(name: str, world: OutsideWorld) -> None:
    """From now on this is the world of that name; what fails in it, and how often, goes on as in
    the one before."""
    before = _worlds[name]
    world.failing, world.failures = before.failing, before.failures
    _worlds[name] = world


@contextmanager
def opened(name: str, world: OutsideWorld) -> Iterator[OutsideWorld]:
    """Within the block, the world has this name."""
    _worlds[name] = world
    try:
        yield world
    finally:
        del _worlds[name]


class OutsideWorld:
    """``expected`` are the records of the undisturbed run, if they are known: then no other is ever
    taken. Where changes are written, they are the rows that stand at the end.

    >>> world = OutsideWorld(random.Random(1), expected=["a"])
    >>> world.write("t", ["a"]); world.commit("t"); world.commit("t"); world.committed
    Counter({"'a'": 1})
    """

    def __init__(
        self,
        chance: random.Random,
        expected: Iterable[Any] | None = None,
        failing: float = 0.0,
        pace_s: float = 0.0,
        later: Callable[[float, Callable[[], None]], object] = lambda delay_s, action: None,
        on_problem: Callable[[EngineError], object] = lambda error: None,
    ) -> None:
        self.chance, self.failing = chance, failing
        # told what is raised: who commits may take it for a failure, and try again
        self._on_problem = on_problem
        self.later = later  # calls an action after so many virtual seconds
        self.pace_s = pace_s  # what a source waits, at most, between two of its batches
        self.failures = 0
        self._expected = None if expected is None else Counter(map(repr, expected))
        self._open: dict[str, list[Any]] = {}
        self._committed: dict[str, list[Any]] = {}
        self._of_checkpoints: dict[int | None, frozenset[str]] = {}
        self.committed: Counter[str] = Counter()

    # -- transactions ------------------------------------------------------------------------------

    def write(self, transaction: str, records: Sequence[Any]) -> None:
        """Adds records to a transaction that nobody sees yet."""
        if transaction in self._committed:
            raise self._problem(f"{records} come into {transaction}, which is committed")
        self._open.setdefault(transaction, []).extend(records)

    def commit(self, transaction: str) -> None:
        """Makes its records visible. A second commit does nothing."""
        if transaction in self._committed:
            return
        if transaction not in self._open:
            raise self._problem(f"{transaction} is to be committed, and nobody has written it")
        records = self._committed[transaction] = self._open.pop(transaction)
        self.committed.update(map(repr, records))
        strange = Counter[str]() if self._expected is None else self.committed - self._expected
        if strange and not any(isinstance(each, Change) for each in records):
            raise self._problem(
                f"{transaction} commits these too often, or they are wrong: {strange}; it has "
                f"{records}"
            )

    def commit_together(self, checkpoint_id: int | None, transactions: Sequence[str]) -> None:
        """Makes them visible, one after the other, with failures between. They are all of that
        checkpoint: a commit that comes again has the same."""
        all_of_it = self._of_checkpoints.setdefault(checkpoint_id, frozenset(transactions))
        if all_of_it != frozenset(transactions):
            raise self._problem(
                f"checkpoint {checkpoint_id} was {sorted(all_of_it)} when it was committed, and is "
                f"{sorted(transactions)} now"
            )
        for transaction in transactions:
            self.commit(transaction)
            self.maybe_fail("the middle of a commit")

    def _problem(self, text: str) -> EngineError:
        error = EngineError(text)
        self._on_problem(error)
        return error

    def check_whole(self) -> None:
        """The job has finished. Raises EngineError if something is missing."""
        if self._expected is None:
            return
        found = Counter(map(repr, self.records))
        if wrong := found - self._expected:
            raise EngineError(f"these stand at the end, and are wrong: {wrong}")
        if missing := self._expected - found:
            lost = {
                name: records
                for name, records in self._open.items()
                if any(repr(record) in missing for record in records)
            }
            raise EngineError(
                f"these were never committed: {missing}; they were written, in part, as {lost}"
            )

    def see(self, records: Iterable[Any]) -> None:
        """These became visible elsewhere."""
        self.write("elsewhere", list(records))
        self.commit("elsewhere")

    @property
    def records(self) -> list[Any]:
        """All that is visible, in the order of the commits; of changes the rows that stand."""
        return standing(record for records in self._committed.values() for record in records)

    def fork(self) -> OutsideWorld:
        """Another world, which was the same up to now."""
        other = copy(self)
        other._open = {transaction: list(records) for transaction, records in self._open.items()}
        other._committed, other.committed = dict(self._committed), self.committed.copy()
        other._of_checkpoints = dict(self._of_checkpoints)
        return other

    # -- failures ----------------------------------------------------------------------------------

    def maybe_fail(self, where: str) -> None:
        """Raises ValueError now and then, as long as ``failing`` is not 0."""
        if self.failing and self.chance.random() < self.failing:
            self.failures += 1
            raise ValueError(f"a simulated failure in {where}")
