"""The classes user functions derive from, under PyFlink's module path."""

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

__all__ = [
    "AggregateFunction",
    "CoFlatMapFunction", "CoMapFunction", "CoProcessFunction", "FilterFunction", "FlatMapFunction", "Function", "KeyedCoProcessFunction",
    "KeyedProcessFunction", "KeyedStateStore",
    "KeySelector", "MapFunction", "Partitioner", "ProcessFunction", "ReduceFunction", "RuntimeContext", "SinkFunction",
    "SourceFunction",
]
