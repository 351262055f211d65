"""Deciding for a job: events in, commands out. No thread, socket, clock or Ray inside."""

# a bare `import scheduler` would make a second copy of every class
if __name__ != "flinkpy.scheduler":
    raise ImportError("import this package as flinkpy.scheduler")
