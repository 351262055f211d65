"""Keyed state: what a program may keep per key, the backends that hold it, and its snapshots by key group."""
