"""When a file sink ends a part file and begins the next one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from flinkpy.core.errors import ProgramError


@dataclass
class OpenPart:
    """What a policy may know of the part being written. Times are milliseconds of processing time."""

    size: int
    opened_ms: int
    written_ms: int


class RollingPolicy(ABC):
    """Asked after each batch, and every ``bucket check interval`` while nothing comes.

    >>> RollingPolicy.default_rolling_policy(part_size=1000).should_roll(OpenPart(1000, 0, 0), now_ms=1)
    True
    """

    @abstractmethod
    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        """Whether the part is to be ended now."""

    @staticmethod
    def default_rolling_policy(part_size: int = 128 << 20, rollover_interval: int = 60_000,
                               inactivity_interval: int = 60_000) -> DefaultRollingPolicy:
        """By size in bytes, by age, and by the time nothing was written; both times in milliseconds."""
        return DefaultRollingPolicy(part_size, rollover_interval, inactivity_interval)

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        """With each checkpoint, and never otherwise."""
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """A part ends when it has reached its size, its age, or was not written to for too long.

    >>> DefaultRollingPolicy(1000, 60_000, 5_000).should_roll(OpenPart(10, opened_ms=0, written_ms=0), now_ms=5_000)
    True
    """

    part_size: int
    rollover_interval: int
    inactivity_interval: int

    def __post_init__(self) -> None:
        for name in ("part_size", "rollover_interval", "inactivity_interval"):
            if isinstance(getattr(self, name), bool) or not isinstance(getattr(self, name), int) or getattr(self, name) < 1:
                raise ProgramError(f"a rolling policy's {name} is a whole number from 1 on, this is {getattr(self, name)!r}")

    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        return (part.size >= self.part_size or now_ms - part.opened_ms >= self.rollover_interval
                or now_ms - part.written_ms >= self.inactivity_interval)


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """A part holds the records between two checkpoints; without checkpoints there is one part.

    >>> OnCheckpointRollingPolicy().should_roll(OpenPart(1 << 40, 0, 0), now_ms=1)
    False
    """

    def should_roll(self, part: OpenPart, now_ms: int) -> bool:
        return False


NEVER_BEFORE_THE_END = OnCheckpointRollingPolicy()
