"""Sources one behind the other, under PyFlink's module path."""

from flinkpy.connectors.hybrid_source import HybridSource, HybridSourceBuilder

__all__ = ["HybridSource", "HybridSourceBuilder"]
