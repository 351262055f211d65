"""Reading and writing topics of Kafka, under PyFlink's module path; KafkaRecord is flinkpy's own.
Needs the extra ``flinkpy[kafka]``.

>>> KafkaTopicPartition("orders", 0) == KafkaTopicPartition(topic="orders", partition=0)
True
"""

from flinkpy.connectors.delivery_guarantee import DeliveryGuarantee
from flinkpy.connectors.kafka.flink_kafka_consumer import FlinkKafkaConsumer
from flinkpy.connectors.kafka.kafka_offsets import (
    KafkaOffsetResetStrategy,
    KafkaOffsetsInitializer,
    KafkaTopicPartition,
)
from flinkpy.connectors.kafka.kafka_source import KafkaSource, KafkaSourceBuilder
from flinkpy.connectors.kafka.record_decoding import KafkaRecord
from flinkpy.connectors.kafka.writing.record_serialization import (
    KafkaRecordSerializationSchema,
    KafkaRecordSerializationSchemaBuilder,
    KafkaTopicSelector,
)
from flinkpy.connectors.kafka.writing.sink_builders import (
    FlinkKafkaProducer,
    KafkaSink,
    KafkaSinkBuilder,
    Semantic,
)
from flinkpy.core.program.public_names import publish

__all__ = [
    "DeliveryGuarantee",  # PyFlink's programs import it from here
    "FlinkKafkaConsumer",
    "KafkaOffsetResetStrategy",
    "KafkaOffsetsInitializer",
    "KafkaRecord",
    "KafkaSource",
    "KafkaSourceBuilder",
    "KafkaTopicPartition",
    "FlinkKafkaProducer",
    "KafkaRecordSerializationSchema",
    "KafkaRecordSerializationSchemaBuilder",
    "KafkaSink",
    "KafkaSinkBuilder",
    "KafkaTopicSelector",
    "Semantic",
]

publish(__name__)
