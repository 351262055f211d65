"""Streams as the program records them: rows or columns, and what the verbs of DataStream record."""
