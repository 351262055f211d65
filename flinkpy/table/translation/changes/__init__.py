"""Operators of the nodes whose rows change."""
