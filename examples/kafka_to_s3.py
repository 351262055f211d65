"""Orders from a topic of Kafka become Parquet in a bucket of S3, exactly once; Spark sums up what
is there.

    pip install 'flinkpy[kafka]'  # for --spark also flinkpy[spark]
    python examples/kafka_to_s3.py localhost:9092 orders s3://lake/orders [--spark]

It needs a broker with the topic, and a bucket. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, for a
server other than Amazon's, AWS_ENDPOINT_URL say where the bucket is and who writes;
docs/kafka-to-s3.md starts both on one machine.

Messages are JSON: ``{"order": 1, "shop": "Oslo", "cents": 300}``. They become columns a batch at a
time, with the message's time, and go to a folder for each day. A file is seen when the checkpoint
that has it is complete, whatever is killed meanwhile. The program reads what the topic has, and
ends; without ``set_bounded`` it goes on."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pyarrow as pa

from flinkpy.common import WatermarkStrategy
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.datastream.connectors.file_system import FileSink
from flinkpy.datastream.connectors.kafka import KafkaOffsetsInitializer, KafkaSource
from flinkpy.datastream.formats.json import JsonColumnarDecoder
from flinkpy.table.expressions import col

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = pa.schema([("order", pa.int64()), ("shop", pa.string()), ("cents", pa.int64())])


def orders_to_lake(brokers: str, topic: str, lake: str) -> None:
    """Writes all orders of the topic that cost something."""
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1000)
    messages = (
        KafkaSource.builder()
        .set_bootstrap_servers(brokers)
        .set_topics(topic)
        .set_property("isolation.level", "read_committed")
    )
    messages.set_starting_offsets(KafkaOffsetsInitializer.earliest()).set_bounded(
        KafkaOffsetsInitializer.latest()
    )
    source = messages.set_columns(JsonColumnarDecoder(ORDER), timestamp="at").build()
    orders = env.from_source(source, WatermarkStrategy.for_monotonous_timestamps(), topic).uid(
        topic
    )
    paid = orders.filter(col("cents") > 0).with_column("day", col("at").to_date)
    paid.sink_to(FileSink(lake, "parquet", partition_by=["day"])).uid("lake")
    env.execute("orders to the lake")


def lake_in_spark(spark: SparkSession, lake: str) -> DataFrame:
    """What is in the lake: flinkpy reads the files, and hands them over to Spark in Ray's object
    store."""
    env = StreamExecutionEnvironment.get_execution_environment()
    return env.from_parquet(lake).to_spark(spark, "orders")


def sales(orders: DataFrame) -> DataFrame:
    """For each day and shop: orders, and what they cost."""
    from pyspark.sql import functions as f

    return (
        orders.groupBy("day", "shop")
        .agg(f.count("*").alias("orders"), f.sum("cents").alias("cents"))
        .orderBy("day", "shop")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Orders from Kafka become Parquet on S3.")
    parser.add_argument("brokers", nargs="?", default="localhost:9092", metavar="HOST:PORT")
    parser.add_argument("topic", nargs="?", default="orders")
    parser.add_argument(
        "lake",
        nargs="?",
        default="s3://lake/orders",
        metavar="URL",
        help="a folder in a bucket; a path on disk does too",
    )
    parser.add_argument(
        "--spark", action="store_true", help="then sum up in Spark what is in the lake"
    )
    arguments = parser.parse_args()
    orders_to_lake(arguments.brokers, arguments.topic, arguments.lake)
    if arguments.spark:
        from flinkpy.spark import spark_session, stop_spark

        sales(lake_in_spark(spark_session("lake", stream_cpus=1), arguments.lake)).show()
        stop_spark()


if __name__ == "__main__":
    main()
