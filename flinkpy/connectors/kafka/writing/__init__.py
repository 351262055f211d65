"""Kafka topics as sinks: messages, producers, and the transactions of exactly once."""
