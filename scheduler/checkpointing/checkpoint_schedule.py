"""When the next checkpoint is due: an interval after the last one was triggered, and a pause after
the last one was complete."""

from __future__ import annotations

from flinkpy.core.options.checkpointing import CheckpointSettings
from flinkpy.scheduler.protocol import Command, SetTimer


class CheckpointSchedule:
    """A checkpoint that is due stays so until it is triggered, however long that cannot be done."""

    DUE, PAUSE = "checkpoint-due", "checkpoint-pause"  # timers

    def __init__(self, settings: CheckpointSettings, commands: list[Command]) -> None:
        self._settings, self._commands = settings, commands
        self._is_due = self._pauses = False

    @property
    def is_due(self) -> bool:
        return self._is_due and not self._pauses

    def wait_interval(self) -> None:
        """The job has begun, or a checkpoint was triggered."""
        self._is_due = False
        if self._settings.interval_s is not None:
            self._commands.append(SetTimer(self.DUE, self._settings.interval_s))

    def wait_pause(self) -> None:
        """A checkpoint is complete."""
        if self._settings.min_pause_s > 0:
            self._pauses = True
            self._commands.append(SetTimer(self.PAUSE, self._settings.min_pause_s))

    def fall_due(self) -> None:
        self._is_due = True

    def timer_fired(self, timer_id: str) -> None:
        """Other timers are not heard."""
        if timer_id == self.DUE:
            self._is_due = True
        elif timer_id == self.PAUSE:
            self._pauses = False
