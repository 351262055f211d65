"""Operators over rows: map, filter, flat_map, and keyed reduce and aggregates."""
