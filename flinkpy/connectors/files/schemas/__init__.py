"""Schemas of files: of several together, and inferred ones."""
