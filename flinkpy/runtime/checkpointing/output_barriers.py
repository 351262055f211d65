"""Barriers at the outputs of a task: they overtake what consumers have not taken, at once or when
their time is up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext

from flinkpy.core.elements import CheckpointBarrier
from flinkpy.core.reactor import ReactorTimer
from flinkpy.network.port import RecordWriter
from flinkpy.runtime.alignment import overtakes_in_s
from flinkpy.runtime.checkpointing.channel_recording import ChannelRecording, TaskTiming


class OutputBarriers:
    """Records what barriers overtake in all writers. One checkpoint at a time is gathered: the
    newest."""

    def __init__(self, writers: Sequence[RecordWriter], timing: TaskTiming) -> None:
        self._writers, self._timing = list(writers), timing
        self._recording: ChannelRecording | None = None
        self._timer: ReactorTimer | None = None
        self._before_ends: ReactorTimer | None = None
        for writer in self._writers:
            writer.set_barrier_listener(self._barrier_left)

    def before_the_ends(self, barrier: CheckpointBarrier, write: Callable[[], None]) -> None:
        """Calls ``write``, which writes the barrier, when it may overtake the ends of the
        partitions: now, or when its time is up. Never, if a consumer has taken an end by then: for
        that one the barrier would be lost, while others wait for what that one saves."""
        delay_s = overtakes_in_s(barrier, self._timing.now_ms())
        if delay_s is None:
            return
        self._stop_waiting_before_ends()
        if delay_s > 0:
            self._before_ends = self._timing.later(
                delay_s, lambda: self.before_the_ends(barrier, write)
            )
            return
        # the lock is one for all of the process: no consumer takes an end in between
        with self._writers[0].lock if self._writers else nullcontext():
            if all(writer.holds_ends for writer in self._writers):
                write()

    def barrier_written(self, barrier: CheckpointBarrier) -> ChannelRecording | None:
        """The barrier was just written, behind all output. Returns what it overtakes; None if it
        never does."""
        delay_s = overtakes_in_s(barrier, self._timing.now_ms())
        if delay_s is None or not self._writers:
            return None
        self._stop()
        recording = self._recording = ChannelRecording(
            barrier.checkpoint_id, False, lambda: self._abandoned(barrier.checkpoint_id)
        )
        if delay_s == 0:
            self._overtake(recording)
        elif self._holds(barrier.checkpoint_id):
            self._timer = self._timing.later(delay_s, lambda: self._overtake(recording))
        else:
            self._finish(recording)
        return recording

    def _overtake(self, recording: ChannelRecording) -> None:
        if self._recording is not recording:
            return
        # the barriers leave while they overtake, before what they overtook is taken down
        self._stop_timer()
        for writer in self._writers:
            for channel, elements in enumerate(writer.overtake(recording.checkpoint_id)):
                if elements:
                    recording.log_of(writer.key_of(channel)).extend(elements)
        self._finish(recording)

    def _barrier_left(self, checkpoint_id: int) -> None:
        """The last consumer of a writer has taken the barrier."""
        recording = self._recording
        if (
            self._timer is not None
            and recording is not None
            and recording.checkpoint_id == checkpoint_id
            and not self._holds(checkpoint_id)
        ):
            self._finish(recording)

    def _holds(self, checkpoint_id: int) -> bool:
        return any(writer.holds_barrier(checkpoint_id) for writer in self._writers)

    def _finish(self, recording: ChannelRecording) -> None:
        self._stop()
        recording.finish()

    def _abandoned(self, checkpoint_id: int) -> None:
        if self._recording is not None and self._recording.checkpoint_id == checkpoint_id:
            self._stop()

    def _stop(self) -> None:
        self._recording = None
        self._stop_timer()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _stop_waiting_before_ends(self) -> None:
        if self._before_ends is not None:
            self._before_ends.cancel()
            self._before_ends = None

    def close(self) -> None:
        """The task has ended."""
        self._stop()
        self._stop_waiting_before_ends()

    def __repr__(self) -> str:
        return f"<OutputBarriers: {self._recording}>"
