"""The memory of a worker: who has reserved how much of what its slots manage."""
