"""Joins of two streams, in windows or within intervals of event time."""
