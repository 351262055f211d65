"""State: what a program keeps per key or per subtask, the backends that hold it, and its
snapshots."""
