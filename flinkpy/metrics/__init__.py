"""Metrics of functions, under PyFlink's names:
``runtime_context.get_metrics_group().counter("late")``."""

from flinkpy.core.program.public_names import publish
from flinkpy.metrics.metricbase import Counter, Distribution, Histogram, Meter, Metric, MetricGroup

__all__ = ["Counter", "Distribution", "Histogram", "Meter", "Metric", "MetricGroup"]

publish(__name__)
