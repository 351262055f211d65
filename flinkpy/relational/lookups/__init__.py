"""Lookup joins: rows meet what a table has for their keys when they come."""
