"""StreamExecutionEnvironment, under PyFlink's module path."""

from flinkpy.datastream.data_stream import StreamExecutionEnvironment

__all__ = ["StreamExecutionEnvironment"]
