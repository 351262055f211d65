"""The producers of an edge, as they travel."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.ids import (
    ExecutionAttemptId,
    IntermediateDataSetId,
    JobId,
    JobVertexId,
    ResourceId,
    ResultPartitionId,
)
from flinkpy.graph.deployment import ShuffleDescriptor, ShuffleDescriptors, TaskManagerLocation

TEXTS = st.sampled_from(("a", "b", "c"))
NUMBERS = st.integers(0, 40_000)
DESCRIPTORS = st.builds(
    ShuffleDescriptor,
    st.builds(
        ResultPartitionId,
        TEXTS.map(IntermediateDataSetId),
        st.builds(ExecutionAttemptId, TEXTS.map(JobId), TEXTS.map(JobVertexId), NUMBERS, NUMBERS),
    ),
    st.builds(TaskManagerLocation, TEXTS.map(ResourceId), TEXTS, TEXTS, st.integers(0, 65535)),
)


@given(st.lists(DESCRIPTORS, max_size=20))
def test_producers_arrive_as_they_were(descriptors: list[ShuffleDescriptor]) -> None:
    sent = ShuffleDescriptors(descriptors)
    arrived = pickle.loads(pickle.dumps(sent))
    assert type(arrived) is ShuffleDescriptors
    assert arrived == sent


def test_a_producer_of_many_takes_a_few_bytes() -> None:
    """Ten subtasks at each of 500 places; the ids of places are random, as on Ray."""
    names = [f"taskexecutor-{hash((7, place)) & 0xFFFFFFFF:08x}" for place in range(500)]
    descriptors = ShuffleDescriptors(
        ShuffleDescriptor(
            ResultPartitionId(
                IntermediateDataSetId("d"),
                ExecutionAttemptId(JobId("j"), JobVertexId("v"), subtask, 0),
            ),
            TaskManagerLocation(
                ResourceId(names[subtask // 10]),
                f"{names[subtask // 10]}/taskexecutor",
                f"10.0.{subtask // 2560}.{subtask // 10 % 256}",
                30_000 + subtask // 10,
            ),
        )
        for subtask in range(5_000)
    )
    assert len(pickle.dumps(descriptors)) < 4 * 5_000
