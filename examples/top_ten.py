"""The ten articles that sell best, live: sales come from a topic of Kafka, and what is written into
another one always says who is first, second and so on.

    pip install 'flinkpy[kafka]'
    python examples/top_ten.py localhost:9092  # needs the topics "sales" and "best"

Sales are JSON: ``{"article": "tea", "cents": 300}``. A message of ``best`` has the place as its
key, ``{"place":1}``, and replaces the one before of that place; one without a value says that
nobody has the place any more. So a topic that is compacted keeps the ten alone. The program goes on
until it is stopped. With checkpoints it starts again where it was, whatever is killed meanwhile;
readers with ``isolation.level=read_committed`` see each change once.

With ``--once`` it reads what the topic has, prints the ten, and ends."""

from __future__ import annotations

import argparse

import pyarrow as pa

from flinkpy.table import EnvironmentSettings, TableEnvironment

SALES = """
    CREATE TABLE sales (article STRING, cents BIGINT) WITH (
      'connector' = 'kafka', 'topic' = '{topic}', 'properties.bootstrap.servers' = '{brokers}',
      'format' = 'json', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '{end}'
    )
"""
BEST = """
    CREATE TABLE best (
      place BIGINT NOT NULL, article STRING, cents BIGINT, PRIMARY KEY (place) NOT ENFORCED
    ) WITH (
      'connector' = 'upsert-kafka', 'topic' = '{topic}',
      'properties.bootstrap.servers' = '{brokers}', 'properties.isolation.level' = 'read_committed',
      'key.format' = 'json', 'value.format' = 'json', 'value.fields-include' = 'EXCEPT_KEY',
      'scan.bounded.mode' = '{end}',
      'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = 'best-{topic}'
    )
"""
RANKED = """
    INSERT INTO best
    SELECT place, article, cents FROM (
      SELECT *, ROW_NUMBER() OVER (ORDER BY cents DESC) AS place
      FROM (SELECT article, SUM(cents) AS cents FROM sales GROUP BY article)
    ) WHERE place <= 10
"""


def tables_of(brokers: str, sales: str, best: str, once: bool) -> TableEnvironment:
    """An environment with both topics as tables; ``once``: they end with what is there."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    # what was written is seen when a checkpoint is complete
    tables.get_config().set("execution.checkpointing.interval", "1 s")
    end = "latest-offset" if once else "unbounded"
    tables.execute_sql(SALES.format(brokers=brokers, topic=sales, end=end))
    tables.execute_sql(BEST.format(brokers=brokers, topic=best, end=end))
    return tables


def ranked(brokers: str, sales: str, best: str) -> pa.Table:
    """Ranks the sales that are there, and gives what the topic of the ten says then."""
    tables = tables_of(brokers, sales, best, once=True)
    tables.execute_sql(RANKED).wait()
    return tables.from_path("best").to_arrow().sort_by("place")


def main() -> None:
    parser = argparse.ArgumentParser(description="The ten articles that sell best.")
    parser.add_argument("brokers", nargs="?", default="localhost:9092")
    parser.add_argument("--sales", default="sales", help="the topic that is read")
    parser.add_argument("--best", default="best", help="the topic that is written")
    parser.add_argument("--once", action="store_true", help="end with the sales that are there")
    arguments = parser.parse_args()
    topics = arguments.brokers, arguments.sales, arguments.best
    if arguments.once:
        for row in ranked(*topics).to_pylist():
            print(f"{row['place']:>2}. {row['article']}: {row['cents'] / 100:.2f}")
    else:
        tables_of(*topics, once=False).execute_sql(RANKED).wait()


if __name__ == "__main__":
    main()
