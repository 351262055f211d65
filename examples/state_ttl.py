"""State that expires, in RocksDB: of one visitor's clicks on one article, only the first in every
hour counts.

    python examples/state_ttl.py                    # in memory
    python examples/state_ttl.py --backend rocksdb  # needs flinkpy[rocksdb]

Without a time to live the state would grow with every new visitor. Times to live use processing
time, as in Flink: they limit the state, and do not replace event-time windows."""

from __future__ import annotations

import argparse

from flinkpy.common import Duration, Types
from flinkpy.datastream import (
    DataStream,
    EmbeddedRocksDBStateBackend,
    FilterFunction,
    HashMapStateBackend,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from flinkpy.datastream.state import MapStateDescriptor, StateTtlConfig

CLICKS = [
    ("ann", "news"),
    ("ben", "news"),
    ("ann", "news"),
    ("ann", "maps"),
    ("ben", "news"),
    ("cleo", "maps"),
]
BACKENDS = {"hashmap": HashMapStateBackend, "rocksdb": EmbeddedRocksDBStateBackend}


class FirstOfTheHour(FilterFunction):
    """A function of a keyed stream: ``seen`` belongs to the current visitor, and each of its
    entries expires separately."""

    def open(self, runtime_context: RuntimeContext) -> None:
        seen = MapStateDescriptor("articles seen", Types.STRING(), Types.BOOLEAN())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_hours(1)).build())
        self.seen = runtime_context.get_map_state(seen)

    def filter(self, value: tuple[str, str]) -> bool:
        if self.seen.contains(value[1]):
            return False
        self.seen.put(value[1], True)
        return True


def counted(env: StreamExecutionEnvironment) -> DataStream:
    clicks = env.from_collection(CLICKS, Types.TUPLE([Types.STRING(), Types.STRING()]))
    return clicks.key_by(lambda click: click[0]).filter(FirstOfTheHour())


def main() -> None:
    parser = argparse.ArgumentParser(description="Clicks that count.")
    parser.add_argument("--backend", choices=list(BACKENDS), default="hashmap")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_state_backend(BACKENDS[arguments.backend]())
    counted(env).print()
    env.execute("clicks that count")


if __name__ == "__main__":
    main()
