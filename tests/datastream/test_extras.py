"""A package that is not installed is told with the extra that brings it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.core.errors import FlinkpyError, ProgramError
from flinkpy.datastream import DataStream, EmbeddedRocksDBStateBackend, StreamExecutionEnvironment
from flinkpy.state_processor.read_state import ReadState

# made at once, because Arrow looks for pandas when it makes its first array
NUMBERS = pa.table({"n": [1]})


def numbers() -> DataStream:
    return StreamExecutionEnvironment.get_execution_environment().from_arrow(NUMBERS)


def kafka() -> Any:
    from flinkpy.datastream.connectors.kafka import KafkaSource

    return (
        KafkaSource.builder()
        .set_bootstrap_servers("localhost:1")
        .set_topics("t")
        .set_whole_records()
        .build()
    )


def protobuf() -> Any:
    from flinkpy.datastream.formats.protobuf import ProtobufRowDeserializationSchema

    return ProtobufRowDeserializationSchema(int)


def otel() -> Any:
    from flinkpy.metrics.otel import OtelExport

    return OtelExport("http://localhost:1", "job")


def spark() -> Any:
    from flinkpy.spark import spark_session

    return spark_session()


USES: dict[str, tuple[str, str, Callable[[], Any]]] = {
    "to_pandas": ("pandas", "pandas", lambda: numbers().to_pandas()),
    "map_batches": (
        "pandas",
        "pandas",
        lambda: numbers().map_batches(lambda frame: frame, batch_format="pandas"),
    ),
    "read_state": (
        "pandas",
        "pandas",
        lambda: ReadState("s", lambda: iter([1]), {"value": None}).to_pandas(),
    ),
    "to_polars": ("polars", "polars", lambda: numbers().to_polars()),
    "read_avro": (
        "fastavro",
        "avro",
        lambda: numbers().get_execution_environment().from_avro("x.avro"),
    ),
    "write_avro": ("fastavro", "avro", lambda: numbers().write_avro("x")),
    "protobuf": ("google.protobuf.message", "protobuf", protobuf),
    "kafka": ("confluent_kafka", "kafka", kafka),
    "rocksdb": (
        "rocksdict",
        "rocksdb",
        lambda: (
            numbers().get_execution_environment().set_state_backend(EmbeddedRocksDBStateBackend())
        ),
    ),
    "otel": ("opentelemetry.exporter.otlp.proto.http.metric_exporter", "otel", otel),
    "spark": ("pyspark", "spark", spark),
}


@pytest.mark.finding("newcomers 5")
@pytest.mark.parametrize("use", USES)
def test_a_missing_package_is_told_with_its_extra(
    use: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, extra, call = USES[use]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(FlinkpyError) as told:
        call()
    assert f"pip install 'flinkpy[{extra}]'" in str(told.value)


@pytest.mark.skipif(find_spec("cramjam") is not None, reason="the package is installed")
def test_a_codec_of_avro_that_needs_a_package_is_told_while_the_program_is_built() -> None:
    with pytest.raises(ProgramError, match=r"codec='snappy'\): .* you need to install"):
        numbers().write_avro("x", codec="snappy")
