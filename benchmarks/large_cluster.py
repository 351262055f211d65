"""The masters of a large cluster, in simulation: 5,000 TaskExecutors and 50,000 subtasks.

Until all run, ten vertices connected all to all; then ten seconds with a checkpoint of all; then
the death of a worker, in a job of five regions. Everything runs in this process, also what stands
for the TaskExecutors, so the processor's time and the memory are more than those of the masters."""

from __future__ import annotations

import resource
import time
from collections import Counter

from benchmarks.harness import Comparison, quick
from tests.simulation.large_cluster import INTERVAL_S, LargeCluster, large_cluster

TO_RUN_S = 30.0
CALLS_PER_SECOND = 5_800
MEMORY_MB = 2_000


def to_run(large: LargeCluster, limit_s: float) -> Comparison:
    began = time.process_time()
    large.run_until(large.all_run, 300)
    taken = time.process_time() - began
    return within(f"{large.subtasks:,} subtasks, to all RUNNING", "s", taken, limit_s)


def checkpoints(large: LargeCluster, limit: float) -> list[Comparison]:
    large.next_checkpoint()
    large.run_for(1.0)
    known, began = large.checkpoint_id, time.process_time()
    calls = large.run_for(INTERVAL_S)
    assert large.checkpoint_id == known + 1
    print(f"  {time.process_time() - began:.1f} s of the processor for ten seconds", flush=True)
    return [
        within("calls, with a checkpoint of all", "/s", calls.total() / INTERVAL_S, limit, calls)
    ]


def death(large: LargeCluster, regions: int) -> Comparison:
    """The share of the job that restarts when a worker dies."""
    large.run_until(large.all_run, 300)
    large.next_checkpoint()
    began = time.process_time()
    large.cluster.crash_worker(next(iter(large.cluster.workers)))
    large.run_until(lambda: not large.all_run(), 60)
    large.run_until(large.all_run, 300)
    taken = time.process_time() - began
    share = 1 - large.attempts()[0] / large.subtasks
    result = within("a worker's death: share that restarts", "", share, 1 / regions)
    print(f"  {taken:.1f} s of the processor until all run again", flush=True)
    return result


def within(
    name: str, unit: str, value: float, limit: float, parts: Counter[str] | None = None
) -> Comparison:
    reached = "reached" if value <= limit else "NOT REACHED"
    print(f"{name:<40} {value:>10,.2f} {unit:<4} at most {limit:,.2f}: {reached}", flush=True)
    for method, count in (parts or Counter()).most_common():
        print(f"  {method:<38} {count / INTERVAL_S:>10,.1f} /s", flush=True)
    return Comparison(name, unit, value, limit, value / limit if limit else 0.0)


def main() -> list[Comparison]:
    executors = 100 if quick() else 5_000
    with large_cluster(executors) as large:
        results = [to_run(large, TO_RUN_S), *checkpoints(large, CALLS_PER_SECOND)]
    with large_cluster(executors, regions=5) as large:
        results.append(death(large, 5))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return [*results, within("memory of everything", "MB", memory, MEMORY_MB)]
