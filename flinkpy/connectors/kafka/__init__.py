"""Apache Kafka, over librdkafka (the extra ``flinkpy[kafka]``)."""
