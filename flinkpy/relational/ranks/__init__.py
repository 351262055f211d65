"""Operators of STREAMING whose results depend on the order of rows: the best rows of partitions,
the last row of a key."""
