"""The name of a side output."""

from flinkpy.common.output_tag import OutputTag

__all__ = ["OutputTag"]
