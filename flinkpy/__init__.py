"""flinkpy: Apache Flink's architecture in Python, on Ray actors.

The public API stands in :mod:`flinkpy.datastream`, :mod:`flinkpy.common` and :mod:`flinkpy.columns`, under PyFlink's names.
"""

__version__ = "0.1.0"
