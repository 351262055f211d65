"""Matching the events of many keys: their order, their runs, the time at which these end."""
