"""Arrays of which even the smallest lie in mapped files."""

from __future__ import annotations

from flinkpy.operators.columnar.array_memory import ArrayMemory


class _All(ArrayMemory):
    worth_counting = 1


def in_files() -> ArrayMemory:
    """Gives them."""
    return _All(0)
