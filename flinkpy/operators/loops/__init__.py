"""Iterations: the entry, the head and the tail of a loop, and the feedback edge from tail to
head."""
