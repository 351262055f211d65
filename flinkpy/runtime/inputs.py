"""From the gates of a task to the head of its chain: batches go straight in, control elements are
first combined over all channels.

The channels of all gates are numbered consecutively. Each gate feeds one input of the head; several
gates may feed the same one (union). A batch with more rows than the task takes at a time is
processed in parts."""

from __future__ import annotations

from collections.abc import Sequence

from flinkpy.core.elements import (
    Batch,
    CheckpointBarrier,
    ColumnBatch,
    ControlElement,
    EndOfData,
    EndOfPartition,
    LatencyMarker,
    RowBatch,
    Watermark,
    WatermarkStatus,
)
from flinkpy.core.errors import EngineError
from flinkpy.core.remaining_rows import RemainingRows
from flinkpy.network.port import InputGate
from flinkpy.operators.base import InputStatus
from flinkpy.operators.chain.operator_chain import OperatorChain
from flinkpy.runtime.checkpointing.channel_recording import TaskTiming
from flinkpy.runtime.checkpointing.input_barriers import BarrierListener, InputBarriers
from flinkpy.runtime.loop.adaptive_batch_size import AdaptiveBatchSize
from flinkpy.runtime.valve import WatermarkValve

ELEMENTS_PER_STEP = 16
COLUMN_RECORDS_PER_STEP = 4096
NANOS_PER_MS = 1_000_000


class StreamInputs:
    """All inputs of one task. ``input_indices`` stand beside ``gates``. ``checkpoints`` gets each
    barrier when it has come from all channels, or has overtaken what is in them."""

    def __init__(
        self,
        gates: Sequence[InputGate],
        input_indices: Sequence[int],
        chain: OperatorChain,
        batch_size: AdaptiveBatchSize,
        checkpoints: BarrierListener,
        timing: TaskTiming,
    ) -> None:
        self._batch_size = batch_size
        # the rest of a batch, which is processed before anything else
        self._parts: RemainingRows | None = None
        self._parts_from = (0, 0)  # the input and the channel
        self._gates = list(gates)
        self._input_indices = list(input_indices)
        self._chain = chain
        self._processes = chain.batch_inputs()
        if any(index >= len(self._processes) for index in input_indices):
            raise EngineError(
                f"a gate feeds input {max(input_indices)}, but {chain.head!r} has "
                f"{len(self._processes)}"
            )
        self._offsets = [
            sum(gate.channels for gate in self._gates[:number])
            for number in range(len(self._gates))
        ]
        total = sum(gate.channels for gate in self._gates)
        self._valve = WatermarkValve(total)
        self._barriers = InputBarriers(self._gates, timing, checkpoints, self._rest)
        self._with_data = [
            sum(gate.channels for gate, index in zip(gates, input_indices) if index == n)
            for n in range(len(self._processes))
        ]
        self._data_ended = [False] * total
        self._drain = True
        self._left = False
        self._turn = 0

    @property
    def ended(self) -> bool:
        """Whether every channel has said that no records follow."""
        return not any(self._with_data)

    def event_time_and_barriers(self) -> dict[str, float]:
        """The task's metrics of these. May be called from any thread."""
        times = self._barriers.times
        found = {
            "currentInputWatermark": self._valve.watermark,
            "checkpointAlignmentTime": times.alignment_ms,
            "checkpointStartDelayNanos": times.start_delay_ms,
        }
        return {
            name: value if name == "currentInputWatermark" else value * NANOS_PER_MS
            for name, value in found.items()
            if value is not None
        }

    @property
    def end_of_data(self) -> EndOfData:
        """What this task tells its consumers: that it was drained, if all its producers were."""
        return EndOfData(self._drain)

    def process_some(self) -> InputStatus:
        """Processes what is there, up to a bound of elements and records."""
        columns, rows_before, limit = 0, self._batch_size.rows_taken, self._batch_size.rows
        for _ in range(ELEMENTS_PER_STEP):
            if self._parts is not None:
                self._process_part(limit)
            else:
                polled = self._poll()
                if polled is None:
                    return InputStatus.END_OF_INPUT if self.ended else InputStatus.NOTHING_AVAILABLE
                number, channel, element = polled
                if type(element) is RowBatch:
                    index, count = self._input_indices[number], len(element.values)
                    if count > limit:
                        self._parts = RemainingRows(element)
                        self._parts_from = index, self._offsets[number] + channel
                        self._process_part(limit)
                    else:
                        self._processes[index](element)
                        self._batch_size.rows_taken += count
                elif type(element) is ColumnBatch:
                    self._processes[self._input_indices[number]](element)
                    columns += len(element)
                else:
                    # batches went the other way
                    self._control(number, channel, element)  # type: ignore[arg-type]
                    if self.ended:
                        return InputStatus.END_OF_INPUT
                    if type(element) is CheckpointBarrier:
                        break  # the checkpoint it triggers comes first
            if (
                self._batch_size.rows_taken - rows_before >= limit
                or columns >= COLUMN_RECORDS_PER_STEP
            ):
                break
            if self._chain.parked_work.pending() or not self._chain.available:
                break
        return InputStatus.MORE_AVAILABLE

    def _process_part(self, rows: int) -> None:
        parts = self._parts
        assert parts is not None
        part = parts.take(rows)
        if not parts:
            self._parts = None
        self._processes[self._parts_from[0]](part)
        self._batch_size.rows_taken += len(part.values)

    def _rest(self) -> tuple[int, RowBatch] | None:
        """The channel and the rest of the batch that is processed in parts."""
        return (self._parts_from[1], self._parts.rest) if self._parts else None

    def end_event_time(self) -> None:
        """The producers' last watermarks have ended it."""

    def begin_checkpoint(self, barrier: CheckpointBarrier) -> None:
        """All producers have finished: the barrier is behind all that they gave."""
        self._barriers.barrier_at_end(barrier)

    def leave(self) -> None:
        """The task stops at a savepoint: for whoever goes on from there, what still comes has not
        come."""
        self._left = True

    def drain(self) -> bool:
        """After the end of the data: reads what still comes, which may be barriers. True when every
        channel has given its last element."""
        while (polled := self._poll()) is not None:
            number, channel, element = polled
            if isinstance(element, (RowBatch, ColumnBatch)):
                raise EngineError(
                    f"{element!r} came behind EndOfData on channel {channel} of "
                    f"{self._gates[number]!r}"
                )
            if isinstance(element, (CheckpointBarrier, EndOfPartition)) and not self._left:
                self._control(number, channel, element)
        return all(gate.finished for gate in self._gates)

    def _poll(self) -> tuple[int, int, Batch | ControlElement] | None:
        gates = self._gates
        if len(gates) == 1:
            found = gates[0].poll()
            return None if found is None else (0, *found)
        first = self._chain.reads_first
        for _ in range(len(gates)):
            number = self._turn
            self._turn = number + 1 if number + 1 < len(gates) else 0
            if first is not None and not self._has_turn(number, first):
                continue
            polled = gates[number].poll()
            if polled is not None:
                return number, polled[0], polled[1]
        return None

    def _has_turn(self, number: int, first: int) -> bool:
        """Whether this gate feeds the input that is read first, or that input has ended."""
        return self._input_indices[number] == first or not self._with_data[first]

    def _control(self, number: int, channel: int, element: ControlElement) -> None:
        flat = self._offsets[number] + channel
        if isinstance(element, Watermark):
            self._pass_on(self._valve.watermark_from(flat, element))
        elif isinstance(element, WatermarkStatus):
            self._pass_on(self._valve.status_from(flat, element))
        elif isinstance(element, LatencyMarker):
            self._chain.control(element)
        elif isinstance(element, CheckpointBarrier):
            self._barriers.barrier_polled(flat, element)
        else:
            if isinstance(element, EndOfData):
                self._drain = self._drain and element.drain
            self._channel_ended(number, flat, final=isinstance(element, EndOfPartition))

    def _channel_ended(self, number: int, flat: int, final: bool) -> None:
        if not self._data_ended[flat]:
            self._data_ended[flat] = True
            self._pass_on(self._valve.ended(flat, drained=self._drain))
            index = self._input_indices[number]
            self._with_data[index] -= 1
            if not self._with_data[index]:
                self._chain.end_input(index)
        if final:
            self._barriers.channel_ended(flat)

    def _pass_on(self, elements: Sequence[Watermark | WatermarkStatus]) -> None:
        for element in elements:
            self._chain.control(element)

    def close(self) -> None:
        """The task has ended."""
        self._barriers.close()

    def __repr__(self) -> str:
        return (
            f"<StreamInputs: {len(self._gates)} gates, {sum(self._with_data)} channels with "
            f"data, {self._valve!r}>"
        )
