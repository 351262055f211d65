"""``python -m benchmarks.kills [--minutes M] [--seed N] [--signal TERM] [--kafka] [--s3]
[NAME=VALUE ...]``: is anything lost when processes die?

A job of running counts, windowed sums and a windowed join runs on a Ray cluster of its own on this
machine, with a checkpoint each second, and writes into files and into a log with transactions.
Every few seconds a random worker, all workers, the JobManager, or the JobManager and a worker are
killed (``kill -9``, or with ``--signal TERM`` told to stop). One strike in four is followed by
another while the job recovers; half of them come in a checkpoint, when sinks have prepared and not
yet committed. In the end the output must be that of an undisturbed run, line by line, and nothing
may be left: no process, no actor, no file that nobody will commit. With ``--kafka`` the job also
reads a topic and writes windowed sums into another one; they are read as committed records. With
``--s3`` it also writes what it reads of the topic as Parquet into a bucket of an S3 server.
``NAME=VALUE`` sets an option of the job and its session.

Recovery is measured from the strike: to the first record that a sink gets, and to the first new
record that can be seen, for which a checkpoint must be complete."""

from __future__ import annotations

import argparse
import random
import signal
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Event
from typing import Any

from benchmarks.kills.kafka_topics import fed, topics
from benchmarks.kills.program import Input, differences
from benchmarks.kills.run import (
    Disturbed,
    disturbed,
    left_behind,
    options_of,
    undisturbed,
    wait_until,
    wrong_output,
)
from benchmarks.kills.strikes import Killer, Strike, Target
from benchmarks.on_ray import ray_cluster

RATE = 300.0
PAUSE_S = (0.5, 6.0)  # between a recovery and the next strike
OFTEN = {
    Target.WORKER: 6,
    Target.ALL_WORKERS: 1,
    Target.JOB_MANAGER: 4,
    Target.JOB_MANAGER_AND_WORKER: 1,
}
DURING_RECOVERY = 1 / 4
IN_A_CHECKPOINT, AIMS_FOR_S, AIM_S = 1 / 2, 3.0, 0.001
TARGETS_S = {"a worker, a spare there": 1.5, "a worker, no spare": 3.0, "the JobManager": 5.0}


def harass(
    run: Disturbed, killer: Killer, chance: random.Random, seconds: float, by: list[signal.Signals]
) -> None:
    """Strikes until the time is over or the job has ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not run.has_ended():
        target = chance.choices(list(OFTEN), list(OFTEN.values()))[0]
        if chance.random() < IN_A_CHECKPOINT:
            wait_until(run.is_committing, AIMS_FOR_S, AIM_S)
        struck = killer.strike_surely(target, chance.choice(by))
        if chance.random() < DURING_RECOVERY:
            Event().wait(chance.uniform(0.0, 3.0))
            struck = killer.strike(chance.choice(list(Target)), True, chance.choice(by)) or struck
        killer.await_output(struck)
        print(
            (
                f"{len(killer.strikes):4} {struck.kind}: {told(struck.output)}, "
                f"{told(struck.visible)}"
            ),
            flush=True,
        )
        Event().wait(chance.uniform(*PAUSE_S))


def told(seconds: float | None) -> str:
    return "not before the end" if seconds is None else f"{seconds:.2f} s"


def report(strikes: list[Strike]) -> None:
    counts = Counter(each.target.value for each in strikes)
    print(
        f"{len(strikes)} strikes: "
        + ", ".join(f"{target} {count}" for target, count in counts.items())
    )
    kinds: dict[str, list[Strike]] = defaultdict(list)
    for each in strikes:
        if each.output is not None and each.visible is not None:
            kinds[each.kind].append(each)
    for kind, found in sorted(kinds.items()):
        output = [each.output or 0.0 for each in found]
        visible = [each.visible or 0.0 for each in found]
        aim = TARGETS_S.get(kind)
        reached = "reached" if aim is None or statistics.median(output) <= aim else "NOT REACHED"
        verdict = "" if aim is None else f"   target {aim:g} s: {reached}"
        print(
            f"  {kind:40} {len(found):3} times   output {spread(output)}   seen "
            f"{spread(visible)}{verdict}"
        )


def spread(seconds: list[float]) -> str:
    return f"median {statistics.median(seconds):5.2f} s, worst {max(seconds):5.2f} s"


def check(
    seed: int,
    minutes: float,
    options: dict[str, Any],
    folder: Path,
    by: list[signal.Signals],
    broker: Any = None,
    s3: str | None = None,
) -> bool:
    """Whether all was right. ``by``: the signals that processes get; ``broker``: of Kafka, if the
    job reads and writes topics; ``s3``: host and port of a server, if it writes there too."""
    chance, seconds = random.Random(seed), minutes * 60
    mine, expected = folder / "disturbed", folder / "undisturbed"
    count, event_ms = int(RATE * seconds), now_ms()
    records = Input(count, RATE, event_ms)
    wanted, found = (
        (None, None) if broker is None else (topics(broker, count, s3), topics(broker, count, s3))
    )
    with (
        nullcontext()
        if wanted is None
        else fed(broker, wanted, records.undisturbed, event_ms, now_ms)
    ):
        undisturbed(records, expected, options, wanted)
    options = {**options_of(f"kills-{seed}", mine), **options}
    records = Input(count, RATE, now_ms())
    feeding = nullcontext() if found is None else fed(broker, found, records, event_ms, now_ms)
    with feeding, disturbed(records, mine, options, found) as run:
        killer = Killer(run.processes, run.journal, chance, run.has_ended)
        while not run.journal.entries():
            Event().wait(0.05)
        harass(run, killer, chance, seconds, by)
        run.await_end()
    report(killer.strikes)
    print(f"the job started {killer.attempts()} times")
    wrong, left = wrong_output(mine, expected), left_behind(mine, run.processes)
    if wanted is not None and found is not None:
        outputs = wanted.written(broker)
        print("\n".join(f"{name}: {lines.total()} lines" for name, lines in outputs.items()))
        wrong += differences(found.written(broker), outputs)
        left += found.unfinished()
    print("\n".join(wrong) or "the output is that of the undisturbed run")
    print("\n".join(["left behind:", *left]) if left else "nothing left behind")
    return not wrong and not left


def now_ms() -> int:
    return int(time.time() * 1000)


@contextmanager
def s3_server() -> Iterator[str]:
    from tests.s3.server import running_s3

    with running_s3() as host:
        yield host


@contextmanager
def kafka_broker(folder: Path) -> Iterator[Any]:
    from tests.kafka.broker import running_broker

    folder.mkdir(parents=True)
    with running_broker(folder) as broker:
        yield broker


def main() -> None:
    said = (__doc__ or "").partition("\n\n")[2]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=said)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument(
        "--kafka",
        action="store_true",
        help="from Kafka to Kafka too; needs the development dependencies",
    )
    parser.add_argument(
        "--s3", action="store_true", help="the same, and from Kafka to Parquet on S3"
    )
    parser.add_argument(
        "--signal",
        choices=["KILL", "TERM", "either"],
        default="KILL",
        help="how processes are ended (default: KILL)",
    )
    parser.add_argument(
        "--keep", metavar="FOLDER", type=Path, help="for the files, which stay there"
    )
    parser.add_argument("options", nargs="*", metavar="NAME=VALUE")
    arguments = parser.parse_args()
    options = dict(each.split("=", 1) for each in arguments.options)
    print(f"{arguments.minutes:g} minutes, seed {arguments.seed} {options or ''}", flush=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        ray_cluster(cpus=8),
        kafka_broker(Path(folder) / "broker")
        if arguments.kafka or arguments.s3
        else nullcontext() as broker,
        s3_server() if arguments.s3 else nullcontext() as s3,
    ):
        by = (
            [signal.SIGKILL, signal.SIGTERM]
            if arguments.signal == "either"
            else [signal.Signals[f"SIG{arguments.signal}"]]
        )
        right = check(
            arguments.seed,
            arguments.minutes,
            options,
            arguments.keep or Path(folder),
            by,
            broker,
            s3,
        )
    print("exact" if right else "WRONG")
    raise SystemExit(not right)


if __name__ == "__main__":
    main()
