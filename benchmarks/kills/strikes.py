"""Ends processes of a session on Ray (``kill -9``, or SIGTERM), and waits until its job gives new
output."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from threading import Event

from benchmarks.kills.journal import OPENED, OUTPUT, VISIBLE, Journal

WITHIN_S = 120.0  # a bound on hanging, not a measure
LOOK_S = 0.01


class Target(Enum):
    """What a strike kills, all of it in one moment."""

    WORKER = "a worker"
    ALL_WORKERS = "all workers"
    JOB_MANAGER = "the JobManager"
    JOB_MANAGER_AND_WORKER = "the JobManager and a worker"


@dataclass
class Strike:
    """``visible`` is when a transaction was committed that was begun after the strike."""

    at: float
    target: Target
    had_spare: bool
    signal: signal.Signals = signal.SIGKILL
    during_recovery: bool = False
    output: float | None = None  # seconds until the sinks got a record again
    # seconds until a record was seen that was written after the strike
    visible: float | None = None

    @property
    def kind(self) -> str:
        """What recoveries are compared with each other."""
        if self.during_recovery:
            return "any of these, while the job recovers"
        if self.target is Target.WORKER and self.signal is signal.SIGKILL:
            return "a worker, a spare there" if self.had_spare else "a worker, no spare"
        return (
            self.target.value
            if self.signal is signal.SIGKILL
            else f"{self.target.value}, by {self.signal.name}"
        )


class JobHangsError(Exception):
    """No new output came."""


class Processes:
    """Those of one session."""

    def __init__(self, cluster_id: str) -> None:
        self._master, self._worker = f"jobmanager-{cluster_id}", f"taskexecutor-{cluster_id}-"
        self.seen: dict[int, str] = {}

    def living(self) -> dict[str, int]:
        from ray._private import state

        actors = [actor for actor in state.actors().values() if actor["State"] == "ALIVE"]
        found = {actor["Name"]: actor["Pid"] for actor in actors}
        own = {
            name: process
            for name, process in found.items()
            if name.startswith((self._master, self._worker))
        }
        self.seen.update({process: name for name, process in own.items()})
        return own

    def workers(self) -> list[int]:
        return [
            process
            for name, process in sorted(self.living().items())
            if name.startswith(self._worker)
        ]

    def job_manager(self) -> int | None:
        return self.living().get(self._master)

    def left(self) -> list[str]:
        """Processes that were seen and still live."""
        return [
            f"{name} in process {process}"
            for process, name in self.seen.items()
            if _runs_actor(process)
        ]


def _runs_actor(process: int) -> bool:
    """Ray may use a process again for something else."""
    with suppress(OSError), open(f"/proc/{process}/cmdline", "rb") as file:
        return file.read().startswith((b"ray::JobManagerProcess", b"ray::TaskExecutorProcess"))
    return False


class Killer:
    """``has_ended()`` says whether the job has; then no new output is awaited."""

    def __init__(
        self,
        processes: Processes,
        journal: Journal,
        chance: random.Random,
        has_ended: Callable[[], bool],
    ) -> None:
        self._processes = processes
        self._journal = journal
        self._chance = chance
        self._has_ended = has_ended
        self.strikes: list[Strike] = []

    def strike(
        self, target: Target, during_recovery: bool = False, by: signal.Signals = signal.SIGKILL
    ) -> Strike | None:
        """None if a process that it should kill is not there at the moment."""
        workers, master = self._processes.workers(), self._processes.job_manager()
        working = [process for process in workers if process in self._with_tasks()]
        victims = self._victims(target, workers, working, master)
        if not victims or None in victims:
            return None
        struck = Strike(time.monotonic(), target, len(workers) > len(working), by, during_recovery)
        for process in filter(None, victims):
            with suppress(ProcessLookupError):
                os.kill(process, by)
        self.strikes.append(struck)
        return struck

    def strike_surely(self, target: Target, by: signal.Signals = signal.SIGKILL) -> Strike:
        """Waits until there is what it should kill. Raises JobHangsError if that never comes."""
        deadline = time.monotonic() + WITHIN_S
        while (struck := self.strike(target, by=by)) is None:
            if time.monotonic() > deadline:
                raise JobHangsError(
                    f"nothing to kill: {target.value}; processes: {self._processes.living()}"
                )
            Event().wait(LOOK_S)
        return struck

    def _victims(
        self, target: Target, workers: list[int], working: list[int], master: int | None
    ) -> list[int | None]:
        if target is Target.ALL_WORKERS:
            return [*workers]
        if target is Target.JOB_MANAGER:
            return [master]
        worker = self._chance.choice(working or workers) if workers else None
        return [worker] if target is Target.WORKER else [worker, master]

    def await_output(self, struck: Strike) -> None:
        """Until new output is seen, or the job has ended. Raises JobHangsError if neither comes
        about."""
        known = {entry.attempt for entry in self._journal.entries() if entry.at < struck.at}
        deadline = struck.at + WITHIN_S
        looks = 0
        while struck.visible is None:
            fresh = [
                entry
                for entry in self._journal.entries()
                if entry.at >= struck.at and entry.attempt not in known
            ]
            struck.output = next(
                (entry.at - struck.at for entry in fresh if entry.what == OUTPUT), None
            )
            struck.visible = next(
                (entry.at - struck.at for entry in fresh if entry.what == VISIBLE), None
            )
            looks += 1
            if looks % 100 == 0 and self._has_ended():
                return
            if time.monotonic() > deadline:
                living = self._processes.living()
                raise JobHangsError(
                    f"no output within {WITHIN_S:.0f} s after {struck}; processes: {living}"
                )
            Event().wait(LOOK_S)

    def attempts(self) -> int:
        """How many times the job has started."""
        return len(
            {entry.attempt.number for entry in self._journal.entries() if entry.what == OPENED}
        )

    def _with_tasks(self) -> set[int]:
        """The processes in which the newest attempts run."""
        opened = [entry for entry in self._journal.entries() if entry.what == OPENED]
        newest = {(entry.attempt.sink, entry.attempt.subtask): entry.process for entry in opened}
        return set(newest.values())
