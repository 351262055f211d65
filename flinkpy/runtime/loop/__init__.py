"""The slot loop: one thread that runs all tasks of a TaskExecutor, their sockets and timers."""
