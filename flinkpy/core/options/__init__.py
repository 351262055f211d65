"""Options: the schema that parses them, and what is declared, layer by layer. Whoever imports one
of these files has all options declared."""

from flinkpy.core.options import (
    checkpointing,
    compatibility,
    engine,
    events,
    high_availability,
    history,
    logs,
    memory_sizes,
    metrics,
    patterns,
    rest,
    state,
)

__all__ = [
    "checkpointing",
    "compatibility",
    "engine",
    "events",
    "high_availability",
    "history",
    "logs",
    "memory_sizes",
    "metrics",
    "patterns",
    "rest",
    "state",
]
