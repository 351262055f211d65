"""A source that reads several sources one after the other, under PyFlink's module path."""

from flinkpy.connectors.source_api.hybrid import HybridSource, HybridSourceBuilder
from flinkpy.core.program.public_names import publish

__all__ = ["HybridSource", "HybridSourceBuilder"]

publish(__name__)
