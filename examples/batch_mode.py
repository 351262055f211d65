"""The same program in STREAMING and in BATCH mode: sales per shop, with every sale, or once at the
end.

    python examples/batch_mode.py [--batch]

In STREAMING mode every sale emits its shop's new sum, and the program could run for ever. In BATCH
mode the input must be bounded: every exchange between tasks is complete before it is read, a keyed
operator gets its input key by key, and emits only the last result of each key. So a batch job needs
only one slot, holds the state of one key at a time, and its results are the last ones of the
stream. With AUTOMATIC the program runs in BATCH mode if all its sources are bounded and it has no
loop."""

from __future__ import annotations

import argparse

from flinkpy.common import Types
from flinkpy.datastream import DataStream, RuntimeExecutionMode, StreamExecutionEnvironment

SALES = [("north", 20), ("south", 15), ("north", 40), ("north", 10), ("south", 30), ("east", 5)]


def sums(env: StreamExecutionEnvironment) -> DataStream:
    """(shop, sum so far)"""
    sales = env.from_collection(SALES, Types.TUPLE([Types.STRING(), Types.INT()]))
    return sales.key_by(lambda sale: sale[0]).sum(1)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sales per shop.")
    parser.add_argument("--batch", action="store_true", help="run as a batch: one result per shop")
    arguments = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(
        RuntimeExecutionMode.BATCH if arguments.batch else RuntimeExecutionMode.STREAMING
    )
    sums(env).print()
    env.execute("sales per shop")


if __name__ == "__main__":
    main()
