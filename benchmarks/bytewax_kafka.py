"""Kafka to a map to Kafka in Bytewax, for kafka_to_kafka.py, which runs it with an interpreter that
has Bytewax.

    PYTHON benchmarks/bytewax_kafka.py BROKERS SOURCE TARGET COUNT text|json
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import bytewax.operators as op  # type: ignore[import-not-found]
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource  # type: ignore[import-not-found]
from bytewax.dataflow import Dataflow  # type: ignore[import-not-found]
from bytewax.testing import run_main  # type: ignore[import-not-found]


def upper(message: Any) -> Any:
    return KafkaSinkMessage(None, message.value.decode().upper().encode())


def in_euro(message: Any) -> Any:
    order = json.loads(message.value)
    order["price"] *= 0.908
    return KafkaSinkMessage(None, json.dumps(order, separators=(",", ":")).encode())


brokers, source, target, count, job = sys.argv[1:]
flow = Dataflow("kafka_to_kafka")
messages = op.input("in", flow, KafkaSource([brokers], [source], tail=False, batch_size=1000))
mapped = op.map("map", messages, {"text": upper, "json": in_euro}[job])
op.output("out", mapped, KafkaSink([brokers], target))
started = time.perf_counter()
run_main(flow)
print(int(count) / (time.perf_counter() - started))
