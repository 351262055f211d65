"""Whether a task's steps wait, by what they took: the thread's own processor time tells waiting
from computing.

A function that sleeps, asks a server or waits for a model on another processor does not use its
thread meanwhile. While it waits, others can work. A function that computes in Python holds the
interpreter lock, and nothing is won by running another one beside it."""

from __future__ import annotations

# a step after which a task in the loop's thread gets a thread of its own, and for which the loop
# waits at most
LONG_S = 0.05
NOTABLE_S = 0.005  # shorter waits are nothing against the cost of looking for them
WAITED = 0.5  # of its time, and a step counts as one that waits
CALM_STEPS = 32  # in a row, and the task needs no thread of its own


class StepPace:
    """The pace of one task's steps. A task with a thread reports each step with its processor time;
    one without a thread only when ``wants_cpu``.

    >>> pace = StepPace()
    >>> pace.step_took(0.02, 0.001); pace.waits
    True
    >>> for _ in range(CALM_STEPS):
    ...     pace.step_took(0.001, 0.001)
    >>> pace.waits, pace.is_calm
    (False, True)
    """

    __slots__ = ("_calm", "_computes", "needs_thread", "waits", "wants_cpu")

    def __init__(self) -> None:
        self._calm = 0
        self._computes = False  # its last step that was not short did
        self.waits = False  # lately: nobody should wait for its steps
        self.needs_thread = False  # its last step held up the loop
        # the last step was so long that the next one's processor time is worth its cost
        self.wants_cpu = False

    def step_took(self, seconds: float, cpu_s: float | None = None) -> None:
        """A step took that long, and used the processor for ``cpu_s`` of it."""
        if seconds < NOTABLE_S:
            self.wants_cpu = self.needs_thread = False
            self._calm += 1
            if self._calm >= CALM_STEPS:
                self.waits = False
            return
        self.wants_cpu = True
        has_waited = cpu_s is not None and seconds - cpu_s >= max(NOTABLE_S, WAITED * seconds)
        self.needs_thread = has_waited or seconds >= LONG_S
        self._computes = cpu_s is not None and not has_waited and seconds < LONG_S
        if has_waited:
            self.waits = True
        if self.needs_thread:
            self._calm = 0
        else:
            self._calm += 1
            if self._calm >= CALM_STEPS:
                self.waits = False

    @property
    def patience_s(self) -> float:
        """How long the loop waits for the next step: not at all if it probably waits, and long only
        for one that computes. Short steps say nothing of the first that is not short: subtasks with
        a function that sleeps would begin one after the other."""
        if self.waits:
            return 0.0
        return LONG_S if self._computes else NOTABLE_S

    @property
    def is_calm(self) -> bool:
        """Whether no step was long for a while."""
        return self._calm >= CALM_STEPS

    def settle(self) -> None:
        """The task has moved: what was before does not count."""
        self._calm = 0
        self._computes = self.needs_thread = self.wants_cpu = False
