"""Operators over columns: expressions, functions of batches, and aggregates per key."""
