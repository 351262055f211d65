"""Whether records can have timestamps where the program asks for event time."""

from __future__ import annotations

from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
    UnionTransformation,
)

# Sources of the library whose records have no timestamps unless a strategy stamps them.
_UNSTAMPED_SOURCES = {f"flinkpy.connectors.{name}" for name in (
    "sequence", "ranges", "text_files", "socket_text", "datagen", "arrow", "column_files")}
_NEVER_STAMP = {  # operators whose results have the timestamps of their records
    f"flinkpy.operators.{name}" for name in ("stateless", "columnar", "columnar_aggregate", "columnar_running", "keyed", "keyed_stages", "process")}


def lacks_timestamps(transformation: Transformation) -> bool:
    """True where it is certain that records have no timestamps here: from a source that gives none, through operators that make none."""
    if isinstance(transformation, SourceTransformation):
        operator = type(transformation.operator)
        return operator.__name__ == "SourceReaderOperator" and type(transformation.source).__module__ in _UNSTAMPED_SOURCES
    if isinstance(transformation, OneInputTransformation) and type(transformation.operator).__module__ not in _NEVER_STAMP:
        return False
    if not isinstance(transformation, (OneInputTransformation, PartitionTransformation, UnionTransformation)):
        return False
    return all(map(lacks_timestamps, transformation.inputs))
