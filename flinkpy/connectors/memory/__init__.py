"""Sources of data in the program's memory, and of generated data."""
