"""Converts values of rows to columns and back: Arrow types for declared types, inferred types, and
conversions that never change a value."""
