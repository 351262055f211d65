"""Barriers at the inputs of a task: carries out what the aligner decides, and gathers what is in
flight there when a barrier overtakes it.

A record in flight is recorded by the end of the channel that holds it when the barrier overtakes
it: by this end, or by the producer (``output_barriers``). A channel within a process has only the
producer's queue. There the producer puts the barrier in front and records the elements that it
overtakes, unless the alignment timeout of this end has expired first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from flinkpy.core.elements import CheckpointBarrier, Element, EndOfPartition, RowBatch
from flinkpy.core.reactor import ReactorTimer
from flinkpy.network.channel_state import ElementLog
from flinkpy.network.port import InputGate
from flinkpy.runtime.alignment import AlignmentStep, BarrierAligner, overtakes_in_s
from flinkpy.runtime.checkpointing.barrier_times import BarrierTimes
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording, TaskTiming


class BarrierListener(Protocol):
    """Where barriers go once they have come from all inputs: the task's checkpoints."""

    @property
    def may_overtake(self) -> bool:
        """While this is False, barriers keep their turn."""
        ...

    def pass_barrier(
        self, barrier: CheckpointBarrier, in_flight: ChannelRecording | None, came_ms: int
    ) -> None:
        """The barrier goes on. ``in_flight`` is what it overtakes, if it does; ``came_ms`` the time
        of day at which the first barrier of its checkpoint came."""
        ...


class InputBarriers:
    """The channels of all gates are numbered consecutively. ``rest`` is the channel and the rest of
    a batch that is processed in parts, if there is one."""

    def __init__(
        self,
        gates: Sequence[InputGate],
        timing: TaskTiming,
        listener: BarrierListener,
        rest: Callable[[], tuple[int, RowBatch] | None],
    ) -> None:
        self._channels = [(gate, channel) for gate in gates for channel in range(gate.channels)]
        self._timing = timing
        self._listener = listener
        self._rest = rest
        self._aligner = BarrierAligner(len(self._channels))
        self.times = BarrierTimes(timing.now_ms)
        self._recording: ChannelRecording | None = None
        self._recorded: set[int] = set()  # channels whose barrier is awaited
        # with the checkpoint whose alignment it ends
        self._timer: tuple[int, ReactorTimer] | None = None
        self._wanted: int | None = None  # the checkpoint whose barriers are about to be looked for
        for gate in gates:
            gate.set_barrier_listener(self._arrived)

    # -- in their turn -----------------------------------------------------------------------------

    def barrier_polled(self, flat: int, barrier: CheckpointBarrier) -> None:
        """A barrier came out of a channel."""
        self._came(flat, barrier, ())
        if barrier.options.alignment_timeout_ms is not None and flat in self._aligner.blocked:
            self._await(barrier)

    def channel_ended(self, flat: int) -> None:
        """A channel gave its last element."""
        self._apply(self._aligner.channel_ended(flat))

    def barrier_at_end(self, barrier: CheckpointBarrier) -> None:
        """All producers have finished, so no channel brings this barrier."""
        self._apply(self._aligner.barrier_at_end(barrier))
        self._await(barrier)

    # -- ahead of their turn -----------------------------------------------------------------------

    def _arrived(self, element: CheckpointBarrier | EndOfPartition) -> None:
        """A gate has a barrier that may overtake, or the end of a channel that is recorded. This
        comes at any moment."""
        if isinstance(element, CheckpointBarrier):
            self._await(element)
        elif self._recording is not None:
            self._look_for(self._recording.checkpoint_id)

    def _await(self, barrier: CheckpointBarrier) -> None:
        delay_s = overtakes_in_s(barrier, self._timing.now_ms())
        if delay_s is None:
            return
        if delay_s == 0:
            self._look_for(barrier.checkpoint_id)
        elif self._timer is None or self._timer[0] < barrier.checkpoint_id:
            self._stop_timer()
            self._timer = (
                barrier.checkpoint_id,
                self._timing.later(delay_s, lambda: self._time_is_up(barrier.checkpoint_id)),
            )

    def _time_is_up(self, checkpoint_id: int) -> None:
        self._timer = None
        self._overtake(checkpoint_id)

    def _look_for(self, checkpoint_id: int) -> None:
        if self._wanted is None or self._wanted < checkpoint_id:
            self._wanted = checkpoint_id
            self._timing.soon(lambda: self._overtake(checkpoint_id))

    def _overtake(self, checkpoint_id: int) -> None:
        """Takes the barriers of the checkpoint out of the channels, wherever they are."""
        if self._wanted == checkpoint_id:
            self._wanted = None
        if not self._listener.may_overtake:
            return
        self._apply(self._aligner.time_is_up(checkpoint_id))
        for flat, (gate, channel) in enumerate(self._channels):
            found = gate.overtake(channel, checkpoint_id)
            if found is not None and isinstance(found[0], CheckpointBarrier):
                self._came(flat, found[0].overtaking(), found[1])
        recording = self._recording
        if recording is None or recording.checkpoint_id != checkpoint_id:
            return
        for flat in sorted(self._recorded):
            gate, channel = self._channels[flat]
            found = gate.overtake(channel, checkpoint_id)
            if found is not None:
                self._end_of_recorded(recording, flat, found[1])
                self._apply(self._aligner.end_is_near(flat))

    # -- what the aligner says ---------------------------------------------------------------------

    def _came(self, flat: int, barrier: CheckpointBarrier, overtaken: Sequence[Element]) -> None:
        if self._recording is not None and self._recording.checkpoint_id < barrier.checkpoint_id:
            self._stop_recording()  # that checkpoint is given up
        self.times.barrier_came(barrier)
        step = self._aligner.barrier(flat, barrier)
        if step.overtakes:
            self._begin_recording(barrier.checkpoint_id, step.record)
        if self._recording is not None and self._recording.checkpoint_id == barrier.checkpoint_id:
            self._end_of_recorded(self._recording, flat, overtaken)
        self._carry_out(step)

    def _apply(self, step: AlignmentStep) -> None:
        if step.overtakes and step.forward is not None:
            self._begin_recording(step.forward.checkpoint_id, step.record)
        self._carry_out(step)

    def _carry_out(self, step: AlignmentStep) -> None:
        for flat in step.block:
            gate, channel = self._channels[flat]
            gate.block(channel)
        if step.forward is not None:
            if self._timer is not None and self._timer[0] <= step.forward.checkpoint_id:
                self._stop_timer()
            self.times.barrier_passed(step.forward)
            self._listener.pass_barrier(
                step.forward,
                self._recording if step.overtakes else None,
                self.times.came_ms(step.forward),
            )
        if step.complete and self._recording is not None:
            recording = self._recording
            self._stop_recording()
            recording.finish()
        for flat in step.unblock:
            gate, channel = self._channels[flat]
            gate.unblock(channel)

    def _begin_recording(self, checkpoint_id: int, channels: Sequence[int]) -> None:
        self._stop_recording()
        recording = self._recording = ChannelRecording(
            checkpoint_id, True, lambda: self._abandoned(checkpoint_id)
        )
        rest = self._rest()
        if rest is not None:
            self._log_of(recording, rest[0]).add(rest[1])
        self._recorded = set(channels)
        for flat in channels:
            gate, channel = self._channels[flat]
            gate.record(channel, self._log_of(recording, flat))

    def _end_of_recorded(
        self, recording: ChannelRecording, flat: int, overtaken: Sequence[Element]
    ) -> None:
        """The channel's barrier came: that ends what belongs to the checkpoint."""
        gate, channel = self._channels[flat]
        self._log_of(recording, flat).extend(overtaken)
        gate.record(channel, None)
        self._recorded.discard(flat)

    def _abandoned(self, checkpoint_id: int) -> None:
        if self._recording is not None and self._recording.checkpoint_id == checkpoint_id:
            self._stop_recording()

    def _stop_recording(self) -> None:
        self._recording = None
        for gate, channel in self._channels:
            gate.record(channel, None)

    def _log_of(self, recording: ChannelRecording, flat: int) -> ElementLog:
        gate, channel = self._channels[flat]
        return recording.log_of(gate.source_of(channel))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    def close(self) -> None:
        """The task has ended."""
        self._stop_timer()

    def __repr__(self) -> str:
        return f"<InputBarriers: {self._aligner!r}, {self._recording}>"
