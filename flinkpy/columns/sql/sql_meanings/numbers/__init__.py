"""Functions of numbers, and arithmetic."""
