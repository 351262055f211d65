"""A source of integers, under PyFlink's module path."""

from flinkpy.connectors.memory.ranges import NumberSequenceSource
from flinkpy.core.program.public_names import publish

__all__ = ["NumberSequenceSource"]

publish(__name__)
