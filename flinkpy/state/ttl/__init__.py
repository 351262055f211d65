"""Time to live: what a program configures, and the stored form of a value that expires."""
