"""The tables of Kafka: topics whose messages are rows, changes or upserts."""
