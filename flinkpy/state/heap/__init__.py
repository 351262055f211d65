"""Keyed state in memory: dicts, and a table for whole numbers."""
