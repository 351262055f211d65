"""Keyed state on local disk: a RocksDB database for each operator and subtask."""
