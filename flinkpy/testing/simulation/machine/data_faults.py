"""What goes wrong in a simulated machine, and how likely it is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFaults:
    """Probabilities are for each turn of a loop, each piece of bytes and each action with files.
    Times are virtual seconds.

    The plain delays stay. The faults end at ``until_s``, if it is set, so that a run can reach its
    end."""

    turn_s: float = 0.004  # what passes, at most, before a loop with work turns again
    delay_s: float = 0.002  # how long bytes travel at most
    file_s: float = 0.05  # how long an action with files takes at most
    # how many bytes a connection takes in one direction before they are read
    in_flight: int = 1 << 16
    slow: float = 0.0  # a loop turns late: a function that takes long
    slow_s: float = 1.0
    cut: float = 0.0  # bytes are sent, read, or arrive in part
    late: float = 0.0  # bytes come late, and all behind them on that connection
    late_s: float = 5.0
    lost: float = 0.0  # the connection is lost, with all bytes on their way
    refused: float = 0.0  # a connection cannot be made
    hangs: float = 0.0  # an action with files comes late, and all behind it in that process
    hang_s: float = 20.0
    # how likely nobody tells the other side of a connection that its process has died
    half_open: float = 0.0
    keepalive_s: float = 30.0  # after which the other side finds out
    until_s: float | None = None

    def strike(self, probability: float, drawn: float, now: float) -> bool:
        """Whether a fault of that probability happens now; ``drawn`` is a random number from 0 to
        1."""
        return drawn < probability and (self.until_s is None or now < self.until_s)
