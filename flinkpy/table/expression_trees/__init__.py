"""Expressions of the Table API, and the trees of SQL that they stand for."""
