"""What a checkpoint saves of an operator: its state frozen, in groups of keys and in pieces."""
