"""Options: the schema that parses them, and what is declared, layer by layer. Whoever imports one of these files has all options declared."""

from flinkpy.core.options import compatibility, engine, state

__all__ = ["compatibility", "engine", "state"]
