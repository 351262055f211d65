"""Joins of tables: in BATCH one side is kept, in STREAMING both."""
