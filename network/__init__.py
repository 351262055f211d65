"""The network stack: segments and pools, partitions and gates, credits, frames, and the connections
between TaskExecutors."""

if __name__ != "flinkpy.network":  # a bare `import network` would make a second copy of every class
    raise ImportError("import this package as flinkpy.network")
