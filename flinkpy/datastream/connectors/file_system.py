"""Reading and writing files, under PyFlink's module path; the file formats and ``folder_of`` are
flinkpy's own.

A format says how records become a file. Your own FileFormat derives from one of them.

>>> [
...     issubclass(each, FileFormat)
...     for each in (AvroFormat, CsvFormat, JsonLinesFormat, ParquetFormat, TextFormat)
... ]
[True, True, True, True, True]
>>> sink = FileSink(
...     "out",
...     CsvFormat(columns=["shop", "price"]),
...     buckets=BucketAssigner.base_path_bucket_assigner(),
... )
>>> folder_of({"city": "Oslo", "year": 2024})
'city=Oslo/year=2024'
"""

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
from flinkpy.connectors.files.partition_folders import folder_of
from flinkpy.connectors.files.writing.file_formats import (
    AvroFormat,
    CsvFormat,
    FileFormat,
    JsonLinesFormat,
    ParquetFormat,
    TextFormat,
)
from flinkpy.core.program.public_names import publish

__all__ = [
    "AvroFormat",
    "CsvFormat",
    "FileFormat",
    "JsonLinesFormat",
    "ParquetFormat",
    "TextFormat",
    "folder_of",
    "BucketAssigner",
    "BulkFormat",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileEnumeratorProvider",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "FileSplitAssignerProvider",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
    "StreamingFileSink",
]

publish(__name__)
