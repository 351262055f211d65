"""Families of nodes whose rows change."""
