"""Keyed state under PyFlink's module path: descriptors, the kinds of state, and how long values live.

>>> from flinkpy.common import Duration, Types
>>> from flinkpy.datastream.state import StateTtlConfig, ValueStateDescriptor
>>> descriptor = ValueStateDescriptor("last seen", Types.LONG())
>>> descriptor.enable_time_to_live(StateTtlConfig.new_builder(Duration.of_hours(1)).build())
>>> descriptor.get_name()
'last seen'
"""

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
from flinkpy.state.ttl_config import StateTtlConfig

__all__ = [
    "AggregatingState", "AggregatingStateDescriptor", "AppendingState", "BroadcastState", "ListState", "ListStateDescriptor", "MapState",
    "MapStateDescriptor", "MergingState", "OperatorStateStore", "ReadOnlyBroadcastState", "ReducingState", "ReducingStateDescriptor", "State",
    "StateDescriptor", "StateTtlConfig", "ValueState", "ValueStateDescriptor",
]
