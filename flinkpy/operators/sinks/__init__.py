"""Sinks of every kind, and sources whose ``run`` blocks."""
