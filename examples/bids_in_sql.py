"""Windows in SQL over a stream, into files: the bids of each channel of an auction house, every ten
seconds of event time. Each window goes out once; each row is in the files once, also if the job
fails and starts again.

    python examples/bids_in_sql.py OUTPUT [--events N]

The bids are generated, as in the benchmark Nexmark. With a topic of Kafka only ``BIDS`` differs:
its ``connector`` is ``kafka``, with ``topic``, ``properties.bootstrap.servers`` and ``format``."""

from __future__ import annotations

import argparse

from flinkpy.table import EnvironmentSettings, TableEnvironment

BIDS = """
    CREATE TABLE bids (
      channel STRING, price BIGINT, `dateTime` TIMESTAMP(3),
      WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
    ) WITH ('connector' = 'nexmark', 'kind' = 'bid', 'events.num' = '{events}',
      'first-event.rate' = '1000')
"""
OFFERS = """
    CREATE TABLE offers (
      window_end TIMESTAMP(3), channel STRING, bids BIGINT, highest BIGINT
    ) PARTITIONED BY (channel)
    WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'parquet')
"""
COUNTED = """
    SELECT window_end, channel, COUNT(*), MAX(price)
    FROM TUMBLE(TABLE bids, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND)
    WHERE channel IN ('Google', 'Apple', 'Baidu', 'Facebook')
    GROUP BY window_start, window_end, channel
"""


def write_offers(folder: str, events: int) -> None:
    """Runs the stream until all events have come."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    # files are finished, and seen by readers, with a checkpoint
    tables.get_config().set("execution.checkpointing.interval", "10 s")
    tables.execute_sql(BIDS.format(events=events))
    tables.execute_sql(OFFERS.format(folder=folder))
    tables.execute_sql(f"INSERT INTO offers {COUNTED}").wait()


def report(folder: str) -> TableEnvironment:
    """The files are a table again, and bounded."""
    tables = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
    tables.execute_sql(OFFERS.format(folder=folder))
    return tables


def main() -> None:
    parser = argparse.ArgumentParser(description="Bids of an auction house, by channel.")
    parser.add_argument("output", help="a folder for the windows, as Parquet")
    parser.add_argument("--events", type=int, default=60_000)
    arguments = parser.parse_args()
    write_offers(arguments.output, arguments.events)
    report(arguments.output).execute_sql("""
        SELECT channel, COUNT(*) AS windows, SUM(bids) AS bids, MAX(highest) AS highest
        FROM offers GROUP BY channel ORDER BY channel
    """).print()


if __name__ == "__main__":
    main()
