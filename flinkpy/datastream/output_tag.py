"""The name of a side output."""

from flinkpy.common.side_outputs import OutputTag

__all__ = ["OutputTag"]
