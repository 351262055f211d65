"""Sinks of every kind, and sources whose ``run`` may block."""
