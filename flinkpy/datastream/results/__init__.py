"""The ends of a stream: sinks, and results that come back into the program."""
