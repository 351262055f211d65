"""The example from Kafka over a bucket into Spark: Spark sums up what was written."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from examples.kafka_to_s3 import lake_in_spark, orders_to_lake, sales
from tests.kafka.broker import Broker
from tests.kafka.test_kafka_to_s3 import filled, wanted
from tests.s3.server import Bucket

pytestmark = [
    pytest.mark.spark,
    pytest.mark.ray,
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),
]


def test_spark_sums_up_every_order_once(spark: Any, broker: Broker, bucket: Bucket) -> None:
    lake = bucket.with_keys("orders")  # the workers' environment says nothing of the bucket
    orders_to_lake(broker.bootstrap, filled(broker), lake)
    orders, cents = Counter[Any](), Counter[Any]()
    for _, day, shop, price in wanted():
        orders[day, shop] += 1
        cents[day, shop] += price
    found = sales(lake_in_spark(spark, lake)).collect()
    assert [(row.day, row.shop, row.orders, row.cents) for row in found] == [
        (*place, orders[place], cents[place]) for place in sorted(orders)
    ]
