"""Expressions of plans: typed, and over the columns of a node's inputs by number."""
