"""State larger than memory: the same records through a keyed function with timers, sliding windows,
a session, an interval join and a join of SQL, once with ``hashmap`` and without a limit, and for as
many records with ``rocksdb`` and little memory.

    python -m benchmarks larger_than_memory [--quick] [--megabytes 3000] [--seconds 600]

``--megabytes`` says how much state there is at the end, about; ``--managed`` and ``--objects`` how
many megabytes RocksDB and the objects beside it may have (a tenth of the state, together). Without
``--megabytes`` there are as many records as take so many seconds with ``rocksdb``. Each run has a
process of its own, whose resident size is sampled. Printed are how much it grew beyond a run of few
records, records a second, and whether the results are those of the heap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import Comparison, quick
from flinkpy.common import Configuration, Duration, Row, TimestampAssigner, Types, WatermarkStrategy
from flinkpy.common.time import Time
from flinkpy.datastream import KeyedProcessFunction, ProcessJoinFunction, StreamExecutionEnvironment
from flinkpy.datastream.state import ValueStateDescriptor
from flinkpy.datastream.window import EventTimeSessionWindows, SlidingEventTimeWindows
from flinkpy.runtime.memory.memory_watch import measure_memory

OBJECTS_MB = 32
MANAGED_MB = 64
PAYLOAD = 200  # characters that a record carries
AROUND = 200  # bytes of a record in state, about, beside its payload
SHAPES = ("function", "sliding", "session", "interval join", "SQL join")
DEFAULT_SECONDS = 60
FEW = 20_000


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


def joined_in_sql(env: Any, records: Any) -> Any:
    """The records joined with themselves, half of them on each side."""
    from flinkpy.table import StreamTableEnvironment

    session = StreamTableEnvironment.create(env)
    kind = Types.ROW_NAMED(
        ["k", "n", "at", "t"], [Types.LONG(), Types.LONG(), Types.LONG(), Types.STRING()]
    )
    for name, odd in (("l", 0), ("r", 1)):
        side = records.filter(lambda record, odd=odd: record[2] % 2 == odd)
        rows = side.map(lambda record: Row(*record), output_type=kind)
        session.create_temporary_view(name, session.from_data_stream(rows))
    query = "SELECT l.k, l.`at`, r.`at`, CHAR_LENGTH(l.t) FROM l JOIN r ON l.k = r.k"
    return session.to_data_stream(session.sql_query(query)).map(tuple)


def results_of(shape: str, env: Any, records: Any) -> Any:
    """The stream that the shape makes of records (key, 1, moment, payload)."""
    if shape == "SQL join":
        return joined_in_sql(env, records)
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


class Sampled:
    """The resident size of this process, looked at ten times a second: with the files that it maps,
    and without."""

    def __init__(self) -> None:
        self.sizes = [measure_memory()]
        self.resident = [resident_memory()]
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Sampled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(0.1):
            self.sizes.append(measure_memory())
            self.resident.append(resident_memory())


def resident_memory() -> int:
    pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def timed_records(
    env: Any, records: int, per_second: float | None = None, failed: Path | None = None
) -> Any:
    """The records, each key twice on average, with their moments as timestamps; at most so many per
    second. Fails behind three quarters of them, unless the file ``failed`` is there, and makes
    it."""
    keys, payload = max(1, records // 2), "x" * payload_size()
    began = 0.0

    def record(number: int) -> Any:
        if per_second is not None and not number % 64:
            nonlocal began
            began = began or time.monotonic() - number / per_second
            time.sleep(max(0.0, began + number / per_second - time.monotonic()))
        if number == records * 3 // 4 and failed is not None and not failed.exists():
            failed.touch()
            raise RuntimeError("fails once")
        key = zlib.crc32(number.to_bytes(8, "little")) % keys
        return key, 1, number, f"{payload}{key}"

    moments = WatermarkStrategy.for_bounded_out_of_orderness(
        Duration.of_millis(1)
    ).with_timestamp_assigner(Moments())
    stream = env.from_sequence(0, records - 1).map(record, output_type=Types.PICKLED_BYTE_ARRAY())
    return stream.assign_timestamps_and_watermarks(moments)


def run(shape: str, backend: str, records: int, managed: int, objects: int) -> dict[str, float]:
    config = Configuration()
    config.set_string("state.backend.type", backend)
    config.set_string("state.backend.rocksdb.memory.objects", f"{objects} mb")
    config.set_string("state.backend.columns.memory", f"{objects} mb")
    config.set_string("taskmanager.memory.managed.size", f"{managed} mb")
    env = StreamExecutionEnvironment.get_execution_environment(config)
    env.set_parallelism(1)
    timed = timed_records(env, records)
    digest = count = 0
    started, spent = time.perf_counter(), time.process_time()
    with Sampled() as sampled, results_of(shape, env, timed).execute_and_collect() as results:
        for result in results:
            count += 1
            digest = (digest + zlib.crc32(repr(result).encode())) % (1 << 32)
    seconds = time.perf_counter() - started
    return {
        "seconds": time.process_time() - spent,
        "rate": records / seconds,
        "peak": max(sampled.sizes),
        "results": count,
        "digest": digest,
    }


def in_process(
    shape: str, backend: str, records: int, managed: float = MANAGED_MB, objects: float = OBJECTS_MB
) -> dict[str, float]:
    sizes = number_of("--managed", managed), number_of("--objects", objects)
    command = [sys.executable, "-m", "benchmarks.larger_than_memory", shape, backend]
    command += [str(int(each)) for each in (records, *sizes)]
    command += ["--payload", str(payload_size())]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: dict[str, float] = json.loads(told.splitlines()[-1])
    return found


def number_of(option: str, default: float) -> float:
    """A number from the command line."""
    return float(sys.argv[sys.argv.index(option) + 1]) if option in sys.argv else default


def payload_size() -> int:
    return int(number_of("--payload", PAYLOAD))


def records_of(megabytes: float) -> int:
    """As many as take so much memory in a join, which keeps all of them."""
    return int(megabytes * 1e6 / (payload_size() + AROUND))


def records_wanted(few: dict[str, float]) -> int:
    """As many as the command line says, from what a run of few records showed."""
    megabytes = number_of("--megabytes", 0)
    if megabytes:
        return records_of(megabytes)
    seconds = number_of("--seconds", 5 if quick() else DEFAULT_SECONDS)
    return max(FEW, int(few["rate"] * seconds))


def main() -> list[Comparison]:
    found: list[Comparison] = []
    for shape in SHAPES:
        few = in_process(shape, "rocksdb", FEW)
        records = records_wanted(few)
        heap, disk = (in_process(shape, backend, records) for backend in ("hashmap", "rocksdb"))
        is_equal = all(heap[name] == disk[name] for name in ("results", "digest"))
        heap_grew, disk_grew = ((each["peak"] - few["peak"]) / 1e6 for each in (heap, disk))
        print(
            f"{shape}: {records:,} records; heap +{heap_grew:,.0f} MB, {heap['rate']:,.0f}/s; "
            f"rocksdb +{disk_grew:,.0f} MB to {disk['peak'] / 1e6:,.0f} MB, "
            f"{disk['rate']:,.0f}/s; results {'equal' if is_equal else 'DIFFERENT'}",
            flush=True,
        )
        found.append(
            Comparison(
                f"{shape} with state beyond memory",
                "records/s of processor time",
                records / disk["seconds"],
                records / heap["seconds"],
                heap["seconds"] / disk["seconds"],
            )
        )
    return found


if __name__ == "__main__":
    sizes = [int(each) for each in sys.argv[3:6]]
    print(json.dumps(run(sys.argv[1], sys.argv[2], *sizes)))
