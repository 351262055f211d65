"""How streams end: sinks, and results that are returned to the program."""
