"""A source that reads several sources one after the other, under PyFlink's module path."""

from flinkpy.connectors.source_api.hybrid import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]
