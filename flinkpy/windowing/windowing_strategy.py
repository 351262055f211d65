"""How a stream's records are put into windows, and when these are evaluated: what a program says
between ``window(...)`` and the call that gives results."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flinkpy.common.side_outputs import OutputTag
from flinkpy.core.errors import ProgramError
from flinkpy.windowing.assigners import MergingWindowAssigner, WindowAssigner
from flinkpy.windowing.evictors import Evictor
from flinkpy.windowing.triggers import Trigger


@dataclass(frozen=True)
class WindowingStrategy:
    """Without a ``trigger`` the assigner's default one decides. ``allowed_lateness`` is in
    milliseconds. ``late_tag`` is the side output for late records; without it they are counted in
    ``late_records_dropped`` and in the metric numLateRecordsDropped."""

    assigner: WindowAssigner[Any, Any]
    trigger: Trigger[Any, Any] | None = None
    evictor: Evictor[Any, Any] | None = None
    allowed_lateness: int = 0
    late_tag: OutputTag | None = None

    @property
    def effective_trigger(self) -> Trigger[Any, Any]:
        return self.assigner.get_default_trigger() if self.trigger is None else self.trigger

    def check(self) -> None:
        """Raises ProgramError for parts that do not fit together."""
        trigger = self.effective_trigger
        if isinstance(self.assigner, MergingWindowAssigner) and not trigger.can_merge():
            raise ProgramError(
                f"the windows of {self.assigner!r} merge, and {trigger!r} cannot: its "
                "can_merge() says False"
            )
        lateness = self.allowed_lateness
        if isinstance(lateness, bool) or not isinstance(lateness, int) or lateness < 0:
            raise ProgramError(
                "the allowed lateness is a whole number of milliseconds from 0 on, this is "
                f"{lateness!r:.80}"
            )
