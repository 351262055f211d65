"""The DataStream API, under PyFlink's names.

>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> env.from_collection([1, 2, 3]).map(lambda x: x * 2).print().get_name()
'Sink: Print to Std. Out'
"""

from flinkpy.common.error_policy import DeadLetter, ErrorPolicy, FailedWindow
from flinkpy.core.program.public_names import publish
from flinkpy.datastream.async_data_stream import AsyncDataStream
from flinkpy.datastream.checkpoint_config import CheckpointConfig, ExternalizedCheckpointCleanup
from flinkpy.datastream.checkpointing_mode import CheckpointingMode
from flinkpy.datastream.data_stream import (
    AllWindowedStream,
    BroadcastConnectedStream,
    BroadcastStream,
    CloseableIterator,
    ConnectedStreams,
    DataStream,
    DataStreamSink,
    IterativeStream,
    KeyedStream,
    StreamExecutionEnvironment,
    WindowedStream,
)
from flinkpy.datastream.execution_mode import RuntimeExecutionMode
from flinkpy.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from flinkpy.datastream.functions import (
    AggregateFunction,
    AllWindowFunction,
    AsyncFunction,
    AsyncRetryStrategy,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CoFlatMapFunction,
    CoGroupFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatJoinFunction,
    FlatMapFunction,
    Function,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    JoinFunction,
    KeyedBroadcastProcessFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessAllWindowFunction,
    ProcessFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
    WindowFunction,
)
from flinkpy.datastream.output_tag import OutputTag
from flinkpy.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from flinkpy.datastream.state_backend import (
    EmbeddedRocksDBStateBackend,
    HashMapStateBackend,
    PredefinedOptions,
    StateBackend,
)
from flinkpy.datastream.time_characteristic import TimeCharacteristic
from flinkpy.datastream.time_domain import TimeDomain
from flinkpy.datastream.timerservice import TimerService

__all__ = [
    "AsyncDataStream",
    "AsyncFunction",
    "AsyncRetryStrategy",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "IterativeStream",
    "KeyedBroadcastProcessFunction",
    "AggregateFunction",
    "CheckpointConfig",
    "CheckpointingMode",
    "CloseableIterator",
    "StateBackend",
    "HashMapStateBackend",
    "EmbeddedRocksDBStateBackend",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "ExternalizedCheckpointCleanup",
    "ExternalizedCheckpointRetention",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "KeySelector",
    "MapFunction",
    "MemorySize",
    "OutputTag",
    "Partitioner",
    "PredefinedOptions",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "SinkFunction",
    "SlotSharingGroup",
    "SourceFunction",
    "StreamExecutionEnvironment",
    "TimeCharacteristic",
    "TimeDomain",
    "TimerService",
    "AllWindowFunction",
    "AllWindowedStream",
    "ProcessAllWindowFunction",
    "ProcessWindowFunction",
    "WindowFunction",
    "WindowedStream",
    "DeadLetter",
    "ErrorPolicy",
    "FailedWindow",
    "CoGroupFunction",
    "FlatJoinFunction",
    "JoinFunction",
    "ProcessJoinFunction",
]

publish(__name__)
