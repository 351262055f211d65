"""TimeDomain, under PyFlink's module path."""

from flinkpy.operators.functions import TimeDomain

__all__ = ["TimeDomain"]
