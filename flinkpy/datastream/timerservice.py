"""TimerService, under PyFlink's module path."""

from flinkpy.operators.functions import TimerService

__all__ = ["TimerService"]
