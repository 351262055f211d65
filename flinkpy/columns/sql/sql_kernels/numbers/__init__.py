"""Functions of numbers, and arithmetic, over whole columns."""
