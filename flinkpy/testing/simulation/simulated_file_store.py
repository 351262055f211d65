"""Files in memory that go wrong as they are told: for tests, and for the simulation.

A fault strikes one step, which is one call of the store or of a file in the making. It says how
much of the step happens (nothing, half, all of it) before it raises, and whether the process dies
with it: from then on every step raises, until ``restart``. Files that were not closed are lost.
Half of a ``close`` is a file that can be seen and is cut short, which only the worst of stores do.

    store = SimulatedFileStore(fault_at(7, StorageFault("half", crashes=True)))
    store = SimulatedFileStore(seeded_faults(random.Random(123), 0.05))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from flinkpy.state.checkpoints.file_store import Chunk, FileStore, NewFile

Happens: TypeAlias = Literal["nothing", "half", "all"]
HAPPENS: tuple[Happens, ...] = ("nothing", "half", "all")


@dataclass(frozen=True)
class StorageFault:
    """How much of a step happens, and whether the process dies with it."""

    happens: Happens
    crashes: bool = False


# what strikes a step, by the number of steps before it
FaultPlan: TypeAlias = Callable[[int], StorageFault | None]


class StorageCrash(Exception):
    """The process that used the store is dead."""


def no_faults(step: int) -> None:
    """A store that works."""


def fault_at(step: int, fault: StorageFault) -> FaultPlan:
    """This fault in this step, and no other."""
    return lambda at: fault if at == step else None


def seeded_faults(random_: random.Random, probability: float, crashing: float = 0.2) -> FaultPlan:
    """Any fault in any step with this probability; this share of them kills the process."""

    def strikes(step: int) -> StorageFault | None:
        if random_.random() >= probability:
            return None
        return StorageFault(random_.choice(HAPPENS), random_.random() < crashing)

    return strikes


class SimulatedFileStore(FileStore):
    """``files`` is what anybody can see, by location. ``steps`` counts.

    >>> store = SimulatedFileStore()
    >>> store.write_atomically("folder/file", [b"abc"])
    >>> store.read("folder/file", 1), store.list("folder"), store.steps
    (b'bc', ['file'], 5)
    """

    def __init__(self, faults: FaultPlan = no_faults) -> None:
        self.files: dict[str, bytes] = {}
        self.faults = faults
        self.steps = 0
        self._lives = 0
        self._is_dead = False

    def restart(self, faults: FaultPlan = no_faults) -> None:
        """Another process uses the store; files in the making are lost."""
        self.faults = faults
        self._is_dead = False
        self._lives = self._lives + 1

    def create(self, location: str) -> NewFile:
        self.step(lambda share: None)
        if location in self.files:
            raise FileExistsError(location)
        return _NewSimulatedFile(self, location, self._lives)

    def read(self, location: str, offset: int = 0, length: int | None = None) -> bytes:
        self.step(lambda share: None)
        if location not in self.files:
            raise FileNotFoundError(location)
        return self.files[location][offset : None if length is None else offset + length]

    def delete(self, location: str) -> None:
        self.step(lambda share: self._remove([location], share))

    def delete_dir(self, location: str) -> None:
        self.step(lambda share: self._remove(sorted(self._below(location)), share))

    def list(self, location: str) -> Sequence[str]:
        self.step(lambda share: None)
        return sorted(
            {file[len(location) + 1 :].partition("/")[0] for file in self._below(location)}
        )

    def exists(self, location: str) -> bool:
        self.step(lambda share: None)
        return location in self.files or bool(self._below(location))

    def step(self, effect: Callable[[float], None]) -> None:
        """Does as much of the effect, from 0.0 to 1.0, as the faults leave of it."""
        if self._is_dead:
            raise StorageCrash("the process is dead")
        fault = self.faults(self.steps)
        self.steps += 1
        if fault is None:
            effect(1.0)
            return
        if fault.happens != "nothing":
            effect(0.5 if fault.happens == "half" else 1.0)
        if fault.crashes:
            self._is_dead = True
            raise StorageCrash(f"the process dies in step {self.steps - 1}")
        raise OSError(f"the store fails in step {self.steps - 1}")

    def close_step(self, location: str, effect: Callable[[float], None]) -> None:
        """The step in which a file of that location appears."""
        self.step(effect)

    def appears(self, location: str, data: bytes) -> None:
        """From now on anybody can see this file."""
        self.files[location] = data

    def is_alive(self, life: int) -> bool:
        """Whether the process that began something in this life still lives."""
        return not self._is_dead and life == self._lives

    def _below(self, location: str) -> Sequence[str]:
        return [file for file in self.files if file.startswith(f"{location}/")]

    def _remove(self, locations: Sequence[str], share: float) -> None:
        for location in locations[: int(len(locations) * share)]:
            self.files.pop(location, None)


class _NewSimulatedFile(NewFile):
    def __init__(self, store: SimulatedFileStore, location: str, life: int) -> None:
        self._store = store
        self._location = location
        self._life = life
        self._written = bytearray()
        self._is_open = True

    def write(self, chunk: Chunk) -> None:
        self._check()
        self._store.step(lambda share: self._written.extend(chunk[: int(len(chunk) * share)]))

    def close(self) -> None:
        self._check()
        self._is_open = False
        self._store.close_step(self._location, self._appear)

    def _appear(self, share: float) -> None:
        if self._location in self._store.files:
            raise FileExistsError(self._location)
        self._store.appears(self._location, bytes(self._written[: int(len(self._written) * share)]))

    def discard(self) -> None:
        self._is_open = False

    def _check(self) -> None:
        if not self._store.is_alive(self._life):
            raise StorageCrash("the process is dead")
        if not self._is_open:
            raise ValueError("the file was closed or discarded")
