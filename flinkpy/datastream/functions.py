"""The classes user functions derive from, under PyFlink's module path.

A lambda is enough for ``map``, ``filter``, ``reduce`` and similar methods. A class is for what
needs ``open``, state, timers or two inputs:

>>> class Parse(MapFunction):
...     def map(self, value):
...         return int(value)
>>> class Split(FlatMapFunction):
...     def flat_map(self, value):
...         yield from value.split()
>>> class Numbered(MapPartitionFunction):
...     def map_partition(self, values):
...         return enumerate(values)
>>> class Known(FilterFunction):
...     def open(self, runtime_context):
...         self.names = {"ann", "ben"}
...
...     def filter(self, value):
...         return value in self.names
>>> class Larger(ReduceFunction):
...     def reduce(self, value1, value2):
...         return max(value1, value2)
>>> class First(KeySelector):
...     def get_key(self, value):
...         return value[0]
>>> class EvenOdd(Partitioner):
...     def partition(self, key, num_partitions):
...         return key % 2 % num_partitions
>>> class Mean(AggregateFunction):
...     def create_accumulator(self):
...         return 0, 0
...
...     def add(self, value, accumulator):
...         return accumulator[0] + value, accumulator[1] + 1
...
...     def get_result(self, accumulator):
...         return accumulator[0] / accumulator[1]
...
...     def merge(self, acc_a, acc_b):
...         return acc_a[0] + acc_b[0], acc_a[1] + acc_b[1]
>>> class Both(CoMapFunction):
...     def map1(self, value):
...         return "number", value
...
...     def map2(self, value):
...         return "text", value
>>> class Flat(CoFlatMapFunction):
...     def flat_map1(self, value):
...         yield value
...
...     def flat_map2(self, value):
...         yield from value
>>> class Late(ProcessFunction):
...     def process_element(self, value, ctx):
...         yield value, ctx.timestamp() < ctx.timer_service().current_watermark()
>>> class Remind(KeyedProcessFunction):
...     def process_element(self, value, ctx):
...         ctx.timer_service().register_event_time_timer(ctx.timestamp() + 60_000)
...
...     def on_timer(self, timestamp, ctx):
...         yield ctx.get_current_key(), timestamp
>>> class Merge(CoProcessFunction):
...     def process_element1(self, value, ctx):
...         yield value
...
...     def process_element2(self, value, ctx):
...         yield str(value)
>>> class Match(KeyedCoProcessFunction):
...     def process_element1(self, value, ctx):
...         yield ctx.get_current_key(), value
...
...     def process_element2(self, value, ctx):
...         yield ctx.get_current_key(), value
>>> class Tell(SinkFunction):
...     def invoke(self, value, context):
...         print(value)
>>> class Thrice(SourceFunction):
...     def run(self, ctx):
...         for number in range(3):
...             ctx.collect(number)
...
...     def cancel(self):
...         pass

>>> from flinkpy.datastream import StreamExecutionEnvironment
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> env.from_collection(["1 2", "3"]).flat_map(Split()).map(Parse()).key_by(
...     lambda number: number % 2
... ).reduce(Larger()).take(3)
[1, 2, 3]
"""

from flinkpy.core.program.public_names import publish
from flinkpy.operators.async_io.async_functions import AsyncFunction, AsyncFunctionDescriptor
from flinkpy.operators.async_io.retry import AsyncRetryPredicate, AsyncRetryStrategy
from flinkpy.operators.function_contexts.checkpointed import (
    CheckpointedFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
)
from flinkpy.operators.function_contexts.keyed_state_store import KeyedStateStore
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
    KeySelector,
    MapFunction,
    MapPartitionFunction,
    Partitioner,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
    SinkFunction,
    SourceFunction,
)
from flinkpy.operators.process.broadcast_functions import (
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    KeyedBroadcastProcessFunction,
)
from flinkpy.operators.process.join_functions import (
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessJoinFunction,
)
from flinkpy.windowing.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

__all__ = [
    "AsyncFunction",
    "AsyncFunctionDescriptor",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointedFunction",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "KeyedBroadcastProcessFunction",
    "AggregateFunction",
    "CoFlatMapFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "KeySelector",
    "MapFunction",
    "MapPartitionFunction",
    "Partitioner",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "AllWindowFunction",
    "ProcessAllWindowFunction",
    "ProcessWindowFunction",
    "WindowFunction",
    "CoGroupFunction",
    "FlatJoinFunction",
    "JoinFunction",
    "ProcessJoinFunction",
]

publish(__name__)
