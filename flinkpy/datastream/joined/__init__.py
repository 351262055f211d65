"""Joins of two streams, in windows and within intervals of event time."""
