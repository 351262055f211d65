"""Sources to use and to derive from: what ``env.from_source(...)`` takes.

For your own source derive from :class:`PythonSource`, and say what can be read independently and
how to read it from a position. If you need more (splits that are found while it runs, batches of
columns), derive from :class:`Source`, and provide a :class:`SplitEnumerator` and a
:class:`SourceReader`. Parquet, CSV and JSON files are read with ``env.from_parquet`` and similar
methods; this module loads neither numpy nor Arrow.

>>> class Letters(PythonSource):
...     def read(self, split, position):
...         yield from "abc"[position:]
>>> from flinkpy.datastream import StreamExecutionEnvironment
>>> StreamExecutionEnvironment.get_execution_environment().from_source(Letters()).get_name()
'Source: Source'
"""

from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.files.reading.watched_files import WatchedTextFileSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.nexmark import NexmarkGenerator
from flinkpy.connectors.memory.ranges import CollectionSource, NumberSequenceSource
from flinkpy.connectors.sockets.socket_text import SocketTextSource
from flinkpy.connectors.source_api.enumerators import (
    DiscoveredSplits,
    SplitDiscovery,
    SplitPool,
    SplitQueue,
    SplitShares,
)
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.python_source import PythonSource
from flinkpy.connectors.source_api.readers import (
    UNTIL_WOKEN,
    NothingYet,
    SequentialReader,
    SideBySideReader,
    SplitReader,
    ThreadedSplitReader,
)
from flinkpy.connectors.source_api.source import (
    BeginReading,
    Boundedness,
    InputStatus,
    ReaderContext,
    Source,
    SourceReader,
    SourceSplit,
    SplitEnumerator,
    SplitEnumeratorContext,
)
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch, Watermark, WatermarkStatus
from flinkpy.core.program.public_names import publish

__all__ = [
    "UNTIL_WOKEN",
    "Batch",
    "BeginReading",
    "Boundedness",
    "CollectionSource",
    "ColumnBatch",
    "DataGeneratorSource",
    "DiscoveredSplits",
    "HybridSource",
    "InputStatus",
    "NexmarkGenerator",
    "NothingYet",
    "NumberSequenceSource",
    "PythonSource",
    "ReaderContext",
    "RowBatch",
    "SequentialReader",
    "SideBySideReader",
    "SocketTextSource",
    "Source",
    "SourceReader",
    "SourceSplit",
    "SplitDiscovery",
    "SplitEnumerator",
    "SplitEnumeratorContext",
    "SplitPool",
    "SplitQueue",
    "SplitReader",
    "SplitShares",
    "TextFileSource",
    "ThreadedSplitReader",
    "WatchedTextFileSource",
    "Watermark",
    "WatermarkStatus",
]

publish(__name__)
