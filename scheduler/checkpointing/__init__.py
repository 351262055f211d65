"""Checkpoints as the scheduler decides on them: when, by whom, which are kept, and what is restored
from them."""
