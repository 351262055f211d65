"""Spark in and out of streams, on one Ray cluster (extra ``flinkpy[spark]``).

>>> spark = spark_session()                                                    # doctest: +SKIP
>>> flights = env.from_spark(spark.read.parquet("flights.parquet"))            # doctest: +SKIP
>>> delayed = flights.filter(col("dep_delay") > 60).to_spark(spark)            # doctest: +SKIP
"""

from flinkpy.core.program.public_names import publish
from flinkpy.spark.sink import SparkSink, spark_sink
from flinkpy.spark.spark_on_ray import spark_session, stop_spark

__all__ = ["SparkSink", "spark_session", "spark_sink", "stop_spark"]

publish(__name__)
