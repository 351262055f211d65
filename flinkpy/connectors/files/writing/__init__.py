"""Writing files: a sink whose part files, one series per bucket, become visible when they are
complete."""
