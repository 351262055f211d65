"""Process functions, broadcast state, interval joins: user code with a context, timers and side
outputs."""
