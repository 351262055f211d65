"""Operators that keep no rows."""
