"""What each subtask is sent of a checkpoint: all that it needs, and little more."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.ids import IntermediateDataSetId, OperatorId
from flinkpy.core.keys import key_group_range
from flinkpy.graph.checkpoints import (
    ChannelKey,
    ChannelState,
    KeyedPieces,
    OperatorRestore,
    OperatorSubtaskState,
    OutputRestore,
    StateTable,
    TaskRestore,
)
from flinkpy.graph.job_graph import JobVertex
from flinkpy.scheduler.checkpointing.subtask_restores import SubtaskRestores
from tests.scheduler.checkpoint_ledger import handle
from tests.scheduler.jobs import pipeline

OPERATOR, EDGE = OperatorId("a"), IntermediateDataSetId("ab")


def vertex_of(parallelism: int, max_parallelism: int = 128) -> JobVertex:
    return replace(
        pipeline(1).vertices[0], parallelism=parallelism, max_parallelism=max_parallelism
    )


def saved(
    index: int, keyed: bool, pieces: bool, operator: bool, tables: bool
) -> OperatorSubtaskState:
    if tables:
        return OperatorSubtaskState(
            tables=tuple(
                StateTable(
                    f"{kind} {index}",
                    kind == "keyed",
                    "list",
                    "STRING",
                    handle=handle(f"{kind}-{index}"),
                )
                for kind in ("keyed", "operator")
            )
        )
    return OperatorSubtaskState(
        handle(f"keyed-{index}") if keyed else None,
        handle(f"operator-{index}") if operator else None,
        KeyedPieces("rocksdb", {"0": handle(f"piece-{index}")}) if pieces else None,
    )


@given(st.integers(1, 40), st.integers(1, 40), st.integers(40, 130), st.data())
def test_a_subtask_gets_the_keyed_state_of_its_key_groups_and_all_operator_state(
    before: int, after: int, groups: int, data: st.DataObject
) -> None:
    states = tuple(
        saved(index, *data.draw(st.tuples(*[st.booleans()] * 4))) for index in range(before)
    )
    channels = tuple(
        ChannelState(ChannelKey(EDGE, producer, 0), True, handle(f"channel-{producer}"))
        for producer in range(before)
    )
    whole = TaskRestore(
        7,
        "somewhere",
        {OPERATOR: OperatorRestore(states)},
        outputs=(OutputRestore(0, channels, is_rescaled=True),),
        stops=True,
    )
    restores = SubtaskRestores(whole, vertex_of(after, groups))
    for subtask in range(after):
        owned, found = set(key_group_range(subtask, groups, after)), restores.of(subtask)
        assert (found.checkpoint_id, found.location, found.stops) == (7, "somewhere", True)
        [output] = found.outputs
        assert output.is_rescaled
        assert (
            output.share_of(subtask, after)
            == list(output.channels)
            == whole.outputs[0].share_of(subtask, after)
        )
        assert len(found.operators[OPERATOR].subtasks) == before
        for index, (state, part) in enumerate(zip(states, found.operators[OPERATOR].subtasks)):
            if owned & set(key_group_range(index, groups, before)):
                assert part == state
            else:
                assert not part.has_keys
                assert part.operator == state.operator
                assert [table.name for table in part.tables] == [
                    table.name for table in state.tables if not table.keyed
                ]


@pytest.mark.parametrize(("before", "after"), [(1000, 1000), (1000, 700), (300, 1000)])
def test_what_a_wide_job_is_sent_grows_with_its_width_and_not_with_the_square_of_it(
    before: int, after: int
) -> None:
    states = tuple(saved(index, True, False, False, False) for index in range(before))
    restores = SubtaskRestores(
        TaskRestore(7, "somewhere", {OPERATOR: OperatorRestore(states)}), vertex_of(after, 1 << 12)
    )
    sent = [restores.of(subtask) for subtask in range(after)]
    assert (
        sum(state.has_keys for restore in sent for state in restore.operators[OPERATOR].subtasks)
        < before + after
    )
    # it was 60 kB for each
    assert sum(len(pickle.dumps(restore)) for restore in sent) < 3000 * after
