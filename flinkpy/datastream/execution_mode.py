"""STREAMING, BATCH or AUTOMATIC."""

from flinkpy.core.options import RuntimeMode as RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
