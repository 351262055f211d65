"""The source API (Flink's FLIP-27): sources, splits, enumerators, readers, and the operator and
coordinator that run them."""
