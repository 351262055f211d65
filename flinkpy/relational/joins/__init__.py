"""Joins of tables in BATCH."""
