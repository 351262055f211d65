"""Reading and writing files, under PyFlink's module path."""

from flinkpy.connectors.files.builders import (
    BucketAssigner,
    BulkFormat,
    DefaultRollingPolicy,
    FileCompactor,
    FileCompactStrategy,
    FileEnumeratorProvider,
    FileSink,
    FileSource,
    FileSourceBuilder,
    FileSplitAssignerProvider,
    OnCheckpointRollingPolicy,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
    StreamingFileSink,
)

__all__ = [
    "BucketAssigner", "BulkFormat", "DefaultRollingPolicy", "FileCompactStrategy", "FileCompactor", "FileEnumeratorProvider", "FileSink",
    "FileSource", "FileSourceBuilder", "FileSplitAssignerProvider", "OnCheckpointRollingPolicy", "OutputFileConfig", "RollingPolicy",
    "StreamFormat", "StreamingFileSink",
]
