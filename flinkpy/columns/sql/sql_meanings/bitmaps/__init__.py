"""Sets of numbers: the type BITMAP."""
