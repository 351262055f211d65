"""The connector kit: one suite that every source and every sink passes.

Derive from :class:`SourceTests` or :class:`SinkTests`, and say how the outside system is filled or
read. pytest collects such a class, if its name begins with ``Test``; without pytest, its ``run()``
runs the tests. The guide is docs/connector-guide.md."""

from flinkpy.core.program.public_names import publish
from flinkpy.testing.connectors.connector_tests import ConnectorTests
from flinkpy.testing.connectors.kept_sink import KeptSink
from flinkpy.testing.connectors.manifest_table import Manifest, ManifestTable, ManifestTableSink
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.connectors.sink_tests import SinkTests
from flinkpy.testing.connectors.source_tests import SourceTests

__all__ = [
    "ConnectorTests",
    "KeptSink",
    "Manifest",
    "ManifestTable",
    "ManifestTableSink",
    "PacedSource",
    "SinkTests",
    "SourceTests",
]

publish(__name__)
