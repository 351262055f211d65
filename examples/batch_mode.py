"""The same program as a stream and as a batch: sales per shop, as they come in, or once, when all are there.

    python examples/batch_mode.py [--batch]

As a stream every sale gives its shop's new sum, and the program could go on for ever. As a batch the input must end: then every exchange between
tasks is written to its end before it is read, a keyed operator gets its input key by key, and each key gives its last result alone. So a batch job
gets by with one slot, holds the state of one key at a time, and its results are those the stream ends with. With AUTOMATIC the program is a batch
where all its sources end.
"""

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
    env.set_runtime_mode(RuntimeExecutionMode.BATCH if arguments.batch else RuntimeExecutionMode.STREAMING)
    sums(env).print()
    env.execute("sales per shop")


if __name__ == "__main__":
    main()
