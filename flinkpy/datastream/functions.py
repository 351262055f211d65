"""The classes user functions derive from, under PyFlink's module path."""

from flinkpy.operators.async_functions import AsyncFunction, AsyncFunctionDescriptor
from flinkpy.operators.async_retry import AsyncRetryPredicate, AsyncRetryStrategy
from flinkpy.operators.broadcast_functions import BaseBroadcastProcessFunction, BroadcastProcessFunction, KeyedBroadcastProcessFunction
from flinkpy.operators.checkpointed import CheckpointedFunction, FunctionInitializationContext, FunctionSnapshotContext
from flinkpy.operators.functions import (
    AggregateFunction,
    CoFlatMapFunction,
    CoMapFunction,
    CoProcessFunction,
    FilterFunction,
    FlatMapFunction,
    Function,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
    KeyedStateStore,
    KeySelector,
    MapFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from flinkpy.operators.join_functions import CoGroupFunction, FlatJoinFunction, JoinFunction, ProcessJoinFunction
from flinkpy.windowing.window_functions import AllWindowFunction, ProcessAllWindowFunction, ProcessWindowFunction, WindowFunction

__all__ = [
    "AsyncFunction", "AsyncFunctionDescriptor", "AsyncRetryPredicate", "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction", "BroadcastProcessFunction", "CheckpointedFunction", "FunctionInitializationContext", "FunctionSnapshotContext",
    "KeyedBroadcastProcessFunction",
    "AggregateFunction",
    "CoFlatMapFunction", "CoMapFunction", "CoProcessFunction", "FilterFunction", "FlatMapFunction", "Function", "KeyedCoProcessFunction",
    "KeyedProcessFunction", "KeyedStateStore",
    "KeySelector", "MapFunction", "Partitioner", "ProcessFunction", "ReduceFunction", "RuntimeContext", "SinkFunction",
    "SourceFunction",
    "AllWindowFunction", "ProcessAllWindowFunction", "ProcessWindowFunction", "WindowFunction",
    "CoGroupFunction", "FlatJoinFunction", "JoinFunction", "ProcessJoinFunction",
]
