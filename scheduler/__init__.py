"""Deciding for a job: events in, commands out. No thread, socket, clock or Ray inside."""

if __name__ != "flinkpy.scheduler":  # a bare `import scheduler` would make a second copy of every class
    raise ImportError("import this package as flinkpy.scheduler")
