"""Operators with an error policy: a record whose function raises is tried again, or becomes a dead
letter."""
