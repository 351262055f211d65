"""Aggregates per key over columns, whose state is arrays by the number of the key."""
