"""Sources to derive from and to use: what ``env.from_source(...)`` takes.

A source of one's own is a :class:`PythonSource`: it says what can be read independently, and how to read it from a position. One that needs more
(splits found while it runs, batches of columns) derives from :class:`Source`, and gives a :class:`SplitEnumerator` and a :class:`SourceReader`.
Parquet, CSV and JSON files are read by ``env.from_parquet`` and its kin; this module loads neither numpy nor Arrow.

>>> class Letters(PythonSource):
...     def read(self, split, position):
...         yield from "abc"[position:]
>>> from flinkpy.datastream import StreamExecutionEnvironment
>>> StreamExecutionEnvironment.get_execution_environment().from_source(Letters()).get_name()
'Source: Source'
"""

from flinkpy.connectors.files.text_files import TextFileSource
from flinkpy.connectors.files.watched_files import WatchedTextFileSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.connectors.memory.ranges import CollectionSource, NumberSequenceSource
from flinkpy.connectors.sockets.socket_text import SocketTextSource
from flinkpy.connectors.source_api.enumerators import SplitPool, SplitQueue, SplitShares
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.readers import SequentialReader, SideBySideReader, SplitReader, ThreadedSplitReader
from flinkpy.connectors.source_api.source import (
    Boundedness,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch

__all__ = [
    "Batch", "Boundedness", "CollectionSource", "ColumnBatch", "DataGeneratorSource", "HybridSource", "NexmarkGenerator", "NumberSequenceSource",
    "PythonSource", "ReaderContext", "RowBatch", "SequentialReader", "SideBySideReader", "SocketTextSource", "Source", "SourceReader",
    "SourceSplit", "SplitEnumerator", "SplitEnumeratorContext", "SplitPool", "SplitQueue", "SplitReader", "SplitShares", "TextFileSource",
    "ThreadedSplitReader", "WatchedTextFileSource",
]
