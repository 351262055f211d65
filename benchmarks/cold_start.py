"""The time from ``python job.py`` to the first record on standard output: embedded, and on a
running Ray cluster; and the time of ``flinkpy sql`` with a query of one row."""

from __future__ import annotations

import compileall
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import flinkpy.actors
import flinkpy.network
import flinkpy.scheduler
from benchmarks.harness import Comparison, quick

JOB = """
import sys
from flinkpy.datastream import StreamExecutionEnvironment

env = StreamExecutionEnvironment.get_execution_environment()
words = env.from_collection(["to be or not to be"]).flat_map(str.split).map(lambda word: (word, 1))
counts = words.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1]))
with counts.execute_and_collect() as results:
    for record in results:
        print(record, flush=True)
"""
EMBEDDED_TARGET_MS, RAY_TARGET_MS, SQL_TARGET_MS = 600, 2500, 1000


def first_line_ms(
    command: list[str], environment: dict[str, str], *, to_the_end: bool = False
) -> float:
    """Milliseconds from the start of the program to its first line, or to its end."""
    started = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={**os.environ, **environment}, text=True
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        elapsed = time.perf_counter() - started
        process.stdout.read()
    if to_the_end:
        elapsed = time.perf_counter() - started
    if process.returncode != 0 or not line:
        raise RuntimeError(f"{command} failed with {process.returncode}")
    return elapsed * 1000


def measure(
    name: str,
    job: Path,
    environments: Iterator[dict[str, str]],
    target_ms: float,
    rounds: int,
    after: Callable[[dict[str, str]], object] = lambda environment: None,
) -> Comparison:
    """Medians, beside the time of an interpreter that only imports flinkpy.datastream. Each run
    uses the next environment; ``after`` cleans up."""
    bare = [sys.executable, "-c", "import flinkpy.datastream; print('imported', flush=True)"]

    def once() -> float:
        environment = next(environments)
        taken = first_line_ms([sys.executable, str(job)], environment)
        after(environment)
        return taken

    once()
    ours, imports = [], []
    for _ in range(rounds):
        ours.append(once())
        imports.append(first_line_ms(bare, {}))
    return _compared(name, ours, imports, target_ms)


def _compared(name: str, taken: list[float], imports: list[float], target_ms: float) -> Comparison:
    median = statistics.median(taken)
    result = Comparison(
        name,
        "ms",
        median,
        statistics.median(imports),
        median / statistics.median(imports),
        note=(
            f"bare = the import alone; target {target_ms:.0f} ms: "
            f"{'reached' if median <= target_ms else 'NOT REACHED'}"
        ),
    )
    print(result, flush=True)
    return result


def main() -> list[Comparison]:
    rounds = 2 if quick() else 7
    for package in (flinkpy, flinkpy.actors, flinkpy.network, flinkpy.scheduler):
        # As pip does; with PYTHONDONTWRITEBYTECODE every process would compile the sources
        compileall.compile_dir(package.__path__[0], quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.py"
        job.write_text(JOB)
        results = [
            measure(
                "cold start, embedded",
                job,
                itertools.repeat({"FLINKPY_EXECUTION_TARGET": "embedded"}),
                EMBEDDED_TARGET_MS,
                rounds,
            )
        ]
        results.append(sql_of_one_row(rounds))
        results += on_ray(job, rounds)
    return results


def sql_of_one_row(rounds: int) -> Comparison:
    """The whole of ``flinkpy sql -e "SELECT 1"``, beside an interpreter that only imports
    flinkpy.table."""
    query = [sys.executable, "-m", "flinkpy", "sql", "-e", "SELECT 1"]
    bare = [sys.executable, "-c", "import flinkpy.table; print('imported', flush=True)"]
    first_line_ms(query, {})
    taken, imports = [], []
    for _ in range(rounds):
        taken.append(first_line_ms(query, {}, to_the_end=True))
        imports.append(first_line_ms(bare, {}))
    return _compared('cold start, flinkpy sql -e "SELECT 1"', taken, imports, SQL_TARGET_MS)


def end_session(environment: dict[str, str]) -> None:
    """Stops the session: otherwise its idle processes would run beside the next one."""
    subprocess.run(
        [sys.executable, "-m", "flinkpy", "session", "stop", environment["FLINKPY_CLUSTER_ID"]],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        check=True,
    )


def on_ray(job: Path, rounds: int) -> list[Comparison]:
    """Measures on a running cluster: first with a new session for each program, then with a running
    session."""
    from benchmarks.on_ray import ray_cluster

    with ray_cluster():
        import ray

        ray_is_there = {
            "FLINKPY_EXECUTION_TARGET": "ray",
            "FLINKPY_RAY_ADDRESS": ray.get_runtime_context().gcs_address,
        }
        fresh = (
            {**ray_is_there, "FLINKPY_CLUSTER_ID": f"cold-{number}"} for number in itertools.count()
        )
        return [
            measure("cold start, on Ray", job, fresh, RAY_TARGET_MS, rounds, end_session),
            measure(
                "cold start, session on Ray",
                job,
                itertools.repeat(ray_is_there),
                RAY_TARGET_MS,
                rounds,
            ),
        ]


if __name__ == "__main__":
    main()
