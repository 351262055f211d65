"""Blocks in Ray's object store, as sources and sinks."""
