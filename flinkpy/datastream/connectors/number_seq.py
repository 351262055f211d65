"""A source of integers, under PyFlink's module path."""

from flinkpy.connectors.memory.ranges import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
