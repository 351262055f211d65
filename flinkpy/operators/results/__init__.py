"""Operators that choose which records a stream hands over as its results: the first ones, or the
last one of each key."""
