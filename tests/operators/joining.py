"""Subtasks of a keyed two-input operator, fed by key, stopped and started again with another
parallelism; and disordered input for two streams."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from hypothesis import strategies as st

from flinkpy.core.elements import (
    MAX_TIMESTAMP,
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    RowBatch,
    Watermark,
)
from flinkpy.core.ids import ExecutionAttemptId, JobId, JobVertexId, OperatorId
from flinkpy.core.keys import channel_of_key_group, key_group, key_group_range
from flinkpy.operators.context import OperatorContext, Output, TaskInfo
from flinkpy.state.snapshots.saved_state import SavedState
from tests.operators.harness import ManualTimers, do_all
from tests.state_bytes import keyed_share

BARRIER = CheckpointBarrier(1, 0)
MAX_PARALLELISM = 8

Record: TypeAlias = "tuple[Any, int]"  # a value whose first field is its key, and its timestamp


class Gathered(Output):
    """Everything that came out, main and side results with timestamps."""

    def __init__(self) -> None:
        self.main: list[Record] = []
        self.sides: dict[str, list[Record]] = {}
        self.largest = 0

    def emit(self, batch: Batch) -> None:
        self.main += stamped(batch)
        self.largest = max(self.largest, len(batch))

    def emit_side(self, tag_id: str, batch: Batch) -> None:
        self.sides.setdefault(tag_id, []).extend(stamped(batch))

    def emit_control(self, element: ControlElement) -> None: ...


def stamped(batch: Batch) -> list[Record]:
    """Records with their timestamps; of columns, as tuples. Rows of tables have the timestamp 0."""
    if isinstance(batch, ColumnBatch):
        stamps = [0] * len(batch) if batch.timestamps is None else batch.timestamps.tolist()
        return list(zip([tuple(row.values()) for row in batch.data.to_pylist()], stamps))
    assert batch.timestamps is not None
    return list(zip(batch.values, batch.timestamps, strict=True))


class Subtasks:
    """All subtasks of one operator. ``batches`` makes a batch of records, rows unless it is said
    otherwise; (input, records) -> batch."""

    def __init__(
        self,
        make: Callable[[], Any],
        parallelism: int = 1,
        batches: Callable[[int, Sequence[Record]], Batch] | None = None,
        configuration: dict[str, Any] | None = None,
    ) -> None:
        self._make = make
        self._batches = batches or rows
        self._configuration = configuration or {}
        self.timers, self.output = ManualTimers(), self.new_output()
        self.operators: list[Any] = []
        self.start(parallelism)

    def new_output(self) -> Gathered:
        """What gathers the results."""
        return Gathered()

    def start(self, parallelism: int, saved: Sequence[SavedState] = ()) -> None:
        """Fresh operators, from what the last ones saved."""
        self.operators = []
        for index in range(parallelism):
            operator = self._make()
            groups = key_group_range(index, MAX_PARALLELISM, parallelism)
            operator.setup(self._context(index, parallelism), self.output)
            operator.initialize_state(keyed_share(saved, groups) if saved else None)
            operator.open()
            self.operators.append(operator)

    def _context(self, index: int, parallelism: int) -> OperatorContext:
        task = TaskInfo(
            "job",
            "join",
            ExecutionAttemptId(JobId("job"), JobVertexId("join"), index, 0),
            parallelism,
            MAX_PARALLELISM,
        )
        return OperatorContext(
            OperatorId("join"),
            "join",
            None,
            task,
            self.timers.clock,
            self.timers,
            run_in_task=lambda action: action(),
            send_operator_event=lambda event: None,
            configuration=dict(self._configuration),
            batch_records=4,
        )

    def restart(self, parallelism: int, configuration: dict[str, Any] | None = None) -> None:
        """Starts again from a snapshot, with this configuration if there is one."""
        if configuration is not None:
            self._configuration = configuration
        saved = [operator.freeze_state(BARRIER).write() for operator in self.operators]
        self.close()
        self.start(parallelism, saved)

    def push(self, side: int, records: Sequence[Record]) -> None:
        """One batch for each subtask that owns some of the keys."""
        shares: dict[int, list[Record]] = {}
        for record in records:
            channel = channel_of_key_group(
                key_group(record[0][0], MAX_PARALLELISM), MAX_PARALLELISM, len(self.operators)
            )
            shares.setdefault(channel, []).append(record)
        for channel, share in shares.items():
            operator = self.operators[channel]
            do_all(
                (operator.process_batch1, operator.process_batch2)[side](self._batches(side, share))
            )

    def watermark(self, timestamp: int) -> None:
        for operator in self.operators:
            do_all(operator.process_watermark(Watermark(timestamp)))

    def run(self, steps: Sequence[Any]) -> Gathered:
        """Steps: (side, records), a watermark, or ("restart", parallelism, watermark), which is a
        restart and the watermark that follows it."""
        for step in steps:
            if isinstance(step, int):
                self.watermark(step)
            elif step[0] == "restart":
                self.restart(step[1] % 3 + 1)
                self.restart(step[1])  # a checkpoint may come before the watermark does
                self.watermark(step[2])
            else:
                self.push(*step)
        return self.output

    def close(self) -> None:
        for operator in self.operators:
            operator.close()


def rows(side: int, records: Sequence[Record]) -> RowBatch:
    return RowBatch([value for value, _ in records], [stamp for _, stamp in records])


RAW_STEP = st.one_of(
    st.tuples(
        st.sampled_from([0, 1]),
        st.lists(st.tuples(st.integers(0, 3), st.integers(-12, 12)), min_size=1, max_size=6),
    ),
    st.integers(1, 12),
    st.sampled_from([1, 2, 3]).map(lambda parallelism: ("restart", parallelism)),
)


@st.composite
def disordered(draw: Any, at_least: int = 0) -> list[Any]:
    """Records around the watermark, before and behind it; watermarks that go up, in the end to the
    end of time; restarts: at least so many steps."""
    steps: list[Any] = []
    watermark, number = 0, 0
    for step in draw(st.lists(RAW_STEP, min_size=at_least, max_size=25)):
        if isinstance(step, int):
            watermark += step
            steps.append(watermark)
        elif step[0] == "restart":
            steps.append((*step, watermark))
        else:
            side, records = step
            steps.append(
                (
                    side,
                    [
                        ((key, number + at), watermark + shift)
                        for at, (key, shift) in enumerate(records)
                    ],
                )
            )
            number += len(records)
    return [0, *steps, MAX_TIMESTAMP]


def without_restarts(steps: Sequence[Any]) -> list[Any]:
    """The same, had nothing failed: only the watermark comes a second time."""
    return [
        step[2] if not isinstance(step, int) and step[0] == "restart" else step for step in steps
    ]
