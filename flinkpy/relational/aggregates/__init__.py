"""Aggregates of groups in BATCH, with the meaning of SQL."""
