"""What stands behind the options of a table: its connector's sources and sinks."""
