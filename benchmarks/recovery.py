"""From a failure to the first new record at the sink, on Ray: a worker or the JobManager is killed
(``kill -9``), or a function raises.

A running sum of 100,000 keys in two workers, a checkpoint every 500 ms, otherwise default settings.
A spare worker is that of ``slotmanager.redundant-taskmanager-num``. Each failure happens to a job
of its own, because the pause before a restart grows with each failure of a job. All processes leave
their times, of the machine's one monotonic clock, in a folder:

    notice     until the JobMaster begins the restart
    pause      until the tasks have ended and the restart strategy's pause is over
    slots      until the last task's code is loaded where it runs: in a new worker or the same one
    restore    until the last task's functions are open
    output     until the sink gets a record that is new

After the JobManager's death the first two are one:

    start      until the new JobManager has taken the job over, and made its source's enumerator

``python -m benchmarks.recovery NAME=VALUE ...`` sets options of the job:
``execution.state-recovery.from-local=true`` for local recovery. What a restore itself is made of,
by backend and with more keys, is shown by ``benchmarks.restore``."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from benchmarks.on_ray import ray_cluster
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.source_api.source import Source
from flinkpy.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment

KEYS, RATE = 100_000, 20_000.0
ENDS = {"notice": "RESTARTING", "pause": "RUNNING"}
ENDS_OF_MASTER = {"start": "enumerator"}
TWO_WORKERS = {"cluster.id": "two", "slotmanager.number-of-slots.max": 2}
AND_A_SPARE = {
    "cluster.id": "spare",
    "slotmanager.number-of-slots.max": 3,
    "slotmanager.redundant-taskmanager-num": 1,
    "resourcemanager.taskmanager-timeout": "10 min",
}
COMES_BACK = {
    "cluster.id": "back",
    "slotmanager.number-of-slots.max": 2,
    "high-availability.type": "filesystem",
}
WITHIN_S = 60.0
Mark = tuple[float, str, int]  # when, what, in which process


class Marks:
    """Times that all processes of the job leave in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def add(self, what: str) -> None:
        with open(f"{self.folder}/{os.getpid()}", "a") as file:
            file.write(json.dumps((time.monotonic(), what, os.getpid())) + "\n")

    def since(self, when: float) -> list[Mark]:
        lines = [
            line
            for path in Path(self.folder).iterdir()
            for line in path.read_text().splitlines(keepends=True)
        ]
        found = [json.loads(line) for line in lines if line.endswith("\n")]
        return sorted((at, what, process) for at, what, process in found if at >= when)


class StateHandler(logging.Handler):
    """Marks how the job's state changes: the cluster logs each event of a job."""

    def __init__(self, marks: Marks) -> None:
        super().__init__(logging.INFO)
        self._marks = marks

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", None)
        if event and event["kind"] == "job":
            with suppress(FileNotFoundError):  # a later job, when the folder has gone
                self._marks.add(event["state"])


class WatchedSource(DataGeneratorSource):
    """Its enumerator is made in the JobMaster's process, and there begins to watch the job's
    state."""

    def __init__(self, marks: Marks) -> None:
        super().__init__(lambda index: (index * 7919 % KEYS, 1), rate=RATE)
        self._marks = marks

    def create_enumerator(self, context: Any, checkpoint: Any = None) -> Any:
        log = logging.getLogger("flinkpy.events")
        log.setLevel(logging.INFO)
        log.handlers = [StateHandler(self._marks)]
        self._marks.add("enumerator")
        return super().create_enumerator(context, checkpoint)

    def without_data(self) -> Source[Any]:
        return self


class Watched(MapFunction):
    """Marks when its code is loaded and when it is opened, and raises when it is told."""

    def __init__(self, marks: Marks) -> None:
        self._marks, self._seen = marks, 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._marks.add("loaded")

    def open(self, context: RuntimeContext) -> None:
        self._marks.add("opened")

    def map(self, value: Any) -> Any:
        self._seen += 1
        if self._seen % 100 == 0 and os.path.exists(f"{self._marks.folder}-fail"):
            try:
                os.unlink(f"{self._marks.folder}-fail")
            except FileNotFoundError:
                return value  # another subtask fails
            self._marks.add("raised")
            raise RuntimeError("as told")
        return value


class MarkingSink:
    """Marks the first record of each attempt."""

    def __init__(self, marks: Marks) -> None:
        self._marks = marks

    def open(self) -> None:
        self._any = False

    def write(self, value: Any) -> None:
        if not self._any:
            self._any = True
            self._marks.add("output")

    def flush(self) -> None: ...

    def close(self) -> None: ...


def eventually(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what} did not come about")
        threading.Event().wait(0.01)


def kill_worker(marks: Marks) -> float:
    """One of the two processes in which functions were opened."""
    process = random.choice(
        sorted({process for _, what, process in marks.since(0) if what == "opened"})
    )
    os.kill(process, signal.SIGKILL)
    return time.monotonic()


def kill_job_manager(marks: Marks) -> float:
    """The process in which the job's states were marked last."""
    process = next(process for _, what, process in reversed(marks.since(0)) if what == "enumerator")
    os.kill(process, signal.SIGKILL)
    return time.monotonic()


def fail_task(marks: Marks) -> float:
    Path(f"{marks.folder}-fail").touch()
    eventually(lambda: any(what == "raised" for _, what, _ in marks.since(0)), "the failure")
    return next(at for at, what, _ in marks.since(0) if what == "raised")


def recovered(fail: Callable[[Marks], float], options: dict[str, Any]) -> dict[str, float]:
    """The seconds of each part."""
    with tempfile.TemporaryDirectory() as folder:
        marks = Marks(f"{folder}/marks")
        os.mkdir(marks.folder)
        directory = f"{folder}/checkpoints"
        checkpoints = {
            "execution.checkpointing.interval": "500 ms",
            "execution.checkpointing.dir": directory,
        }
        env = StreamExecutionEnvironment.get_execution_environment({**checkpoints, **options})
        env.set_parallelism(2)
        numbers = env.from_source(WatchedSource(marks), None, "numbers").map(Watched(marks))
        sums = numbers.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
        sums.map(Watched(marks)).sink_to(MarkingSink(marks))
        job = env.execute_async("recovery")
        try:
            newest = 6 if not quick() else 2  # so that state is there
            eventually(
                lambda: any(Path(folder).glob(f"checkpoints/*/chk-{newest}/_metadata")),
                "a checkpoint",
            )
            failed_at = fail(marks)
            eventually(lambda: is_recovered(marks, failed_at), "the recovery")
            return parts_of(
                failed_at,
                marks.since(failed_at),
                ENDS_OF_MASTER if fail is kill_job_manager else ENDS,
            )
        finally:
            job.cancel().result()


def is_recovered(marks: Marks, failed_at: float) -> bool:
    """All four functions of the new attempts are open, and a record came after that."""
    names = [what for _, what, _ in marks.since(failed_at) if what in ("opened", "output")]
    return names.count("opened") == 4 and names[-1] == "output"


def parts_of(failed_at: float, marks: Sequence[Mark], ends: Mapping[str, str]) -> dict[str, float]:
    """The seconds of each part. ``ends`` says of the first parts what is marked when they end."""
    times = [
        failed_at,
        *(next(at for at, what, _ in marks if what == end) for end in ends.values()),
    ]
    first_loaded: dict[int, float] = {}
    for at, what, process in marks:
        if what == "loaded" and at >= times[-1]:
            first_loaded.setdefault(process, at)
    times.append(max(first_loaded.values()))
    times.append(max(at for at, what, _ in marks if what == "opened"))
    times.append(next(at for at, what, _ in marks if what == "output" and at >= times[1]))
    parts = (*ends, "slots", "restore", "output")
    return {part: max(0.0, end - begin) for part, begin, end in zip(parts, times, times[1:])} | {
        "all": times[-1] - failed_at
    }


def start_workers(options: dict[str, Any]) -> None:
    """As many as the session may have."""
    env = StreamExecutionEnvironment.get_execution_environment(options)
    env.set_parallelism(options["slotmanager.number-of-slots.max"])
    env.from_sequence(1, 10).add_sink(lambda value: None)
    env.execute("workers")


def measure(
    name: str, target_s: float, fail: Callable[[Marks], float], options: dict[str, Any], rounds: int
) -> Comparison:
    def once() -> dict[str, float]:
        start_workers(options)
        return recovered(fail, options)

    once()  # a warm-up
    runs = [once() for _ in range(rounds)]
    medians = {part: statistics.median(run[part] for run in runs) for part in runs[0]}
    print(
        f"{name}: " + "  ".join(f"{part} {medians[part]:.2f}" for part in medians if part != "all"),
        flush=True,
    )
    print(f"    each run: {', '.join(format(run['all'], '.2f') for run in runs)} s", flush=True)
    reached = "reached" if medians["all"] <= target_s else "NOT REACHED"
    result = Comparison(
        name,
        "s",
        medians["all"],
        target_s,
        medians["all"] / target_s,
        note=f"bare = the target: {reached}",
    )
    print(result, flush=True)
    return result


def main(options: dict[str, Any] | None = None) -> list[Comparison]:
    rounds = 2 if quick() else 5
    options = options or {}
    with ray_cluster(cpus=8), tempfile.TemporaryDirectory() as folder:
        back = {**COMES_BACK, "high-availability.storageDir": folder}
        return [
            measure(
                "a worker killed, no spare", 3.0, kill_worker, {**TWO_WORKERS, **options}, rounds
            ),
            measure(
                "a worker killed, a spare", 1.5, kill_worker, {**AND_A_SPARE, **options}, rounds
            ),
            measure("a task fails", 1.5, fail_task, {**TWO_WORKERS, **options}, rounds),
            measure("the JobManager killed", 5.0, kill_job_manager, {**back, **options}, rounds),
        ]


if __name__ == "__main__":
    main(dict(argument.split("=", 1) for argument in sys.argv[1:] if "=" in argument))
