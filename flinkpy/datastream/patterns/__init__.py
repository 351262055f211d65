"""Patterns over streams: what ``match`` returns."""
