"""Functions that give another value each time. With a seed they give the numbers of Java's
generator."""

from __future__ import annotations

import random
import uuid

from flinkpy.columns.sql.call_site import VARYING, CallSite, Meaning, MeaningOf
from flinkpy.columns.sql.sql_meanings.null_rules import strict

_MASK = (1 << 48) - 1


class JavaRandom:
    """The numbers of ``java.util.Random``."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ 0x5DEECE66D) & _MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * 0x5DEECE66D + 0xB) & _MASK
        return self._state >> (48 - bits)

    def next_double(self) -> float:
        """From 0 to before 1."""
        return ((self._next(26) << 27) + self._next(27)) / (1 << 53)

    def next_int(self, bound: int) -> int:
        """From 0 to before the bound."""
        if bound <= 0:
            raise ValueError("the bound must be positive")
        if bound & (bound - 1) == 0:
            return (bound * self._next(31)) >> 31
        while True:
            bits = self._next(31)
            found = bits % bound
            if bits - found + bound - 1 < 1 << 31:
                return found


def _rand(site: CallSite) -> Meaning:
    if not site.arguments:
        return random.random
    if site.constant(0) is VARYING:
        return strict(lambda seed: JavaRandom(seed).next_double())
    seeded = JavaRandom(_seed(site))
    return strict(lambda seed: seeded.next_double())


def _rand_integer(site: CallSite) -> Meaning:
    if len(site.arguments) == 1:
        return strict(random.randrange)
    if site.constant(0) is VARYING:
        return strict(lambda seed, bound: JavaRandom(seed).next_int(bound))
    seeded = JavaRandom(_seed(site))
    return strict(lambda seed, bound: seeded.next_int(bound))


def _seed(site: CallSite) -> int:
    seed = site.constant(0)
    return seed if isinstance(seed, int) else 0


RANDOM_MEANINGS: dict[str, MeaningOf] = {
    "RAND": _rand,
    "RAND_INTEGER": _rand_integer,
    "UUID": lambda site: lambda: str(uuid.uuid4()),
}
