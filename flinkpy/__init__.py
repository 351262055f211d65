"""flinkpy: Apache Flink's architecture in Python, on Ray actors.

The public API is in :mod:`flinkpy.datastream` and :mod:`flinkpy.common`, under PyFlink's names, in
:mod:`flinkpy.table.expressions`, and in :mod:`flinkpy.connectors.sources` and
:mod:`flinkpy.connectors.sinks`."""

__version__ = "0.1.0"
