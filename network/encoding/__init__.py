"""Elements as bytes: frames and their payloads, for connections, spilled partitions and channel
state."""
