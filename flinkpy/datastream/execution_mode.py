"""STREAMING, BATCH or AUTOMATIC."""

from flinkpy.core.options.engine import RuntimeMode as RuntimeExecutionMode

__all__ = ["RuntimeExecutionMode"]
