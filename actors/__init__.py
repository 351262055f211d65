"""Actors: the RPC layer (one mailbox and one thread per endpoint) and the four endpoints built on
it."""

if __name__ != "flinkpy.actors":  # a bare `import actors` would make a second copy of every class
    raise ImportError("import this package as flinkpy.actors")
