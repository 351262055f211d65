"""What a function can ask for: its state, where its checkpoints stand, and the time of a sink."""
