"""When a file sink ends a part file and begins the next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError


@dataclass
class OpenPart:
    """What a policy knows about the part that is being written: its size in bytes, when it was
    opened, and when it was last written to, both in milliseconds of processing time."""

    size: int
    opened_ms: int
    written_ms: int


class RollingPolicy(ABC):
    """Decides when a part ends. It is asked after each batch, and at the sink's check interval
    while no record comes.

    >>> RollingPolicy.default_rolling_policy(part_size=1000).should_roll(
    ...     OpenPart(1000, 0, 0), now_ms=1
    ... )
    True
    """

    @abstractmethod
    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        """Whether to end the part now."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 << 20,
        rollover_interval: int = 60_000,
        inactivity_interval: int = 60_000,
    ) -> DefaultRollingPolicy:
        """Ends a part by its size in bytes, by its age, or by the time since it was last written
        to; both times in milliseconds."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """Ends a part at each checkpoint, and never in between."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """Ends a part when it has reached its size or age, or has not been written to for too long.

    >>> DefaultRollingPolicy(1000, 60_000, 5_000).should_roll(
    ...     OpenPart(10, opened_ms=0, written_ms=0), now_ms=5_000
    ... )
    True
    """

    part_size: int
    rollover_interval: int
    inactivity_interval: int

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval", "inactivity_interval"):
            if (
                isinstance(getattr(self, name), bool)
                or not isinstance(getattr(self, name), int)
                or getattr(self, name) < 1
            ):
                raise ProgramError(
                    f"a rolling policy's {name} is a whole number from 1 on, this is "
                    f"{getattr(self, name)!r}"
                )

    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        return (
            part.size >= self.part_size
            or now_ms - part.opened_ms >= self.rollover_interval
            or now_ms - part.written_ms >= self.inactivity_interval
        )


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Has a part hold the records between two checkpoints; without checkpoints there is only one
    part.

    >>> OnCheckpointRollingPolicy().should_roll(OpenPart(1 << 40, 0, 0), now_ms=1)
    False
    """

    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        return False


NEVER_BEFORE_THE_END = OnCheckpointRollingPolicy()
