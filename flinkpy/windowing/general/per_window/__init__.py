"""State and timers by key and window."""
