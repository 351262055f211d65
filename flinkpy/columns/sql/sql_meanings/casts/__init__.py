"""CAST: from any type to any type that Flink casts to."""
