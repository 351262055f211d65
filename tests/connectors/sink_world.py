"""The world of a sink under test, which is part of the connector kit."""

from flinkpy.testing.connectors.sink_world import WITH_CHECKPOINTS, Checkpoint, SinkWorld

__all__ = ["WITH_CHECKPOINTS", "Checkpoint", "SinkWorld"]
