"""State larger than memory: the same records through windows, a session, an interval join and a
keyed function with timers, once with ``hashmap`` and without a limit, and for so long with
``rocksdb`` and little memory.

    python -m benchmarks larger_than_memory [--quick] [--seconds 600]

Each run has a process of its own. Printed are its largest resident size, its records a second, and
whether the results are those of the heap. A payload makes the state as large as one wants: of
``--seconds 600`` it is some gigabytes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from typing import Any

from benchmarks.harness import Comparison, quick
from flinkpy.common import Configuration, Duration, TimestampAssigner, Types, WatermarkStrategy
from flinkpy.common.time import Time
from flinkpy.datastream import KeyedProcessFunction, ProcessJoinFunction, StreamExecutionEnvironment
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows

OBJECTS_MB = 32
PAYLOAD = "x" * 200
SHAPES = ("function", "sliding", "session", "interval join")
DEFAULT_SECONDS = 60


class Moments(TimestampAssigner):
    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        moment: int = value[2]
        return moment


class LastSeen(KeyedProcessFunction):
    """Gives a key's number of records when it has been quiet."""

    def open(self, runtime_context: Any) -> None:
        self.kept = runtime_context.get_state(ValueStateDescriptor("kept"))

    def process_element(self, value: Any, ctx: Any) -> Iterator[Any]:
        count, _ = self.kept.value() or (0, None)
        self.kept.update((count + 1, value[3]))
        if not count:
            ctx.timer_service().register_event_time_timer(value[2] + 1_000_000_000)
        yield from ()

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[Any]:
        yield ctx.get_current_key(), self.kept.value()[0]
        self.kept.clear()


class Pairs(ProcessJoinFunction):
    def process_element(self, left: Any, right: Any, ctx: Any) -> Iterator[Any]:
        yield left[0], left[2] - right[2]


def added(one: Any, other: Any) -> Any:
    return one[0], one[1] + other[1], one[2], one[3]


def results_of(shape: str, records: Any) -> Any:
    """The stream that the shape makes of records (key, 1, moment, payload)."""
    by_key = records.key_by(lambda record: record[0])
    if shape == "function":
        return by_key.process(LastSeen())
    if shape == "sliding":
        windows = SlidingEventTimeWindows.of(Time.days(20), Time.days(10))
        return by_key.window(windows).reduce(added)
    if shape == "session":
        return by_key.window(EventTimeSessionWindows.with_gap(Time.days(10))).reduce(added)
    joined = by_key.interval_join(by_key).between(Time.days(-1), Time.days(1))
    return joined.process(Pairs())


def run(shape: str, backend: str, records: int) -> dict[str, float]:
    config = Configuration()
    config.set_string("state.backend.type", backend)
    config.set_string("state.backend.rocksdb.memory.objects", f"{OBJECTS_MB} mb")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    keys = max(1, records // 2)

    def record(number: int) -> Any:
        key = zlib.crc32(number.to_bytes(8, "little")) % keys
        return key, 1, number, f"{PAYLOAD}{key}"

    moments = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(1)
    ).with_timestamp_assigner(Moments())
    stream = env.from_sequence(0, records - 1).map(record, output_type=Types.PICKLED_BYTE_ARRAY())
    timed = stream.assign_timestamps_and_watermarks(moments)
    digest = count = 0
    started = time.perf_counter()
    with results_of(shape, timed).execute_and_collect() as results:
        for result in results:
            count += 1
            digest = (digest + zlib.crc32(repr(result).encode())) % (1 << 32)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {
        "seconds": seconds,
        "rate": records / seconds,
        "peak": peak,
        "results": count,
        "digest": digest,
    }


def in_process(shape: str, backend: str, records: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", shape, backend, str(records)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found: dict[str, float] = json.loads(told.splitlines()[-1])
    return found


def seconds_wanted() -> float:
    if "--seconds" in sys.argv:
        return float(sys.argv[sys.argv.index("--seconds") + 1])
    return 5 if quick() else DEFAULT_SECONDS


def main() -> list[Comparison]:
    found: list[Comparison] = []
    for shape in SHAPES:
        trial = in_process(shape, "rocksdb", 20_000)
        records = max(20_000, int(trial["rate"] * seconds_wanted()))
        heap, disk = (in_process(shape, backend, records) for backend in ("hashmap", "rocksdb"))
        is_equal = all(heap[name] == disk[name] for name in ("results", "digest"))
        print(
            f"{shape}: {records:,} records; heap {heap['peak'] / 1e6:,.0f} MB, "
            f"{heap['rate']:,.0f}/s; rocksdb {disk['peak'] / 1e6:,.0f} MB, {disk['rate']:,.0f}/s; "
            f"results {'equal' if is_equal else 'DIFFERENT'}",
            flush=True,
        )
        found.append(
            Comparison(
                f"{shape} with state beyond memory",
                "records/s",
                disk["rate"],
                heap["rate"],
                disk["rate"] / heap["rate"],
            )
        )
    return found


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], sys.argv[2], int(sys.argv[3]))))
