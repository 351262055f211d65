"""Whole numbers as a source, under PyFlink's module path."""

from flinkpy.connectors.memory.ranges import NumberSequenceSource

__all__ = ["NumberSequenceSource"]
