"""Writing files: a sink of part files by bucket, visible when they are whole."""
