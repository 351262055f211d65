"""Queries drawn with their rows, run in every way, and judged by DuckDB."""
