"""The world of a source under test, which is part of the connector kit."""

from flinkpy.testing.connectors.source_world import (
    Collected,
    ManualTimers,
    World,
    operator_context,
    read_all,
    travelled,
)

__all__ = ["Collected", "ManualTimers", "World", "operator_context", "read_all", "travelled"]
