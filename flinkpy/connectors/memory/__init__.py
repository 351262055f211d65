"""Data in the program's memory, and data made on the fly."""
