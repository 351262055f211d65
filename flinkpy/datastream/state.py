"""Keyed state under PyFlink's module path: descriptors, the kinds of state, and how long values
live.

>>> from flinkpy.common import Duration, Types
>>> from flinkpy.datastream.state import StateTtlConfig, ValueStateDescriptor
>>> descriptor = ValueStateDescriptor("last seen", Types.LONG())
>>> descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_hours(1)).build())
>>> descriptor.get_name()
'last seen'

A function gets its states in ``open``; they refer to the current key:

>>> from flinkpy.datastream.functions import KeyedProcessFunction
>>> from flinkpy.datastream.state import (
...     ListStateDescriptor,
...     MapStateDescriptor,
...     ReducingStateDescriptor,
... )
>>> class Visitor(KeyedProcessFunction):
...     def open(self, runtime_context):
...         self.last: ValueState[int] = runtime_context.get_state(descriptor)
...         self.pages: ListState[str] = runtime_context.get_list_state(
...             ListStateDescriptor("pages", Types.STRING())
...         )
...         self.counts: MapState[str, int] = runtime_context.get_map_state(
...             MapStateDescriptor("counts", Types.STRING(), Types.LONG())
...         )
...         self.longest: ReducingState[int] = runtime_context.get_reducing_state(
...             ReducingStateDescriptor("longest", max, Types.LONG())
...         )
...
...     def process_element(self, value, ctx):
...         page, second = value
...         if self.last.value() is not None:
...             self.longest.add(second - self.last.value())
...         self.last.update(second)
...         self.pages.add(page)
...         self.counts[page] = (self.counts[page] or 0) + 1
...         yield self.pages.get(), self.counts[page], self.longest.get()
>>> from flinkpy.testing import KeyedOneInputHarness
>>> with KeyedOneInputHarness(Visitor(), lambda value: "ann") as harness:
...     harness.push_all([("home", 3), ("help", 8), ("home", 10)])
...     harness.output
[(['home'], 1, None), (['home', 'help'], 1, 5), (['home', 'help', 'home'], 2, 5)]
"""

from flinkpy.core.program.public_names import publish
from flinkpy.state.api import (
    AggregatingState,
    AppendingState,
    BroadcastState,
    ListState,
    MapState,
    MergingState,
    OperatorStateStore,
    ReadOnlyBroadcastState,
    ReducingState,
    State,
    ValueState,
)
from flinkpy.state.descriptors import (
    AggregatingStateDescriptor,
    ListStateDescriptor,
    MapStateDescriptor,
    ReducingStateDescriptor,
    StateDescriptor,
    ValueStateDescriptor,
)
from flinkpy.state.ttl.config import StateTtlConfig

__all__ = [
    "AggregatingState",
    "AggregatingStateDescriptor",
    "AppendingState",
    "BroadcastState",
    "ListState",
    "ListStateDescriptor",
    "MapState",
    "MapStateDescriptor",
    "MergingState",
    "OperatorStateStore",
    "ReadOnlyBroadcastState",
    "ReducingState",
    "ReducingStateDescriptor",
    "State",
    "StateDescriptor",
    "StateTtlConfig",
    "ValueState",
    "ValueStateDescriptor",
]

publish(__name__)
