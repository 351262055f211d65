"""A task's part in checkpoints: its operators' state is frozen at the barrier, written off its
thread, and read back when it starts again."""
