"""Seeds that once found something, and what. They are played first."""

from __future__ import annotations

REGRESSIONS: dict[int, str] = {
    3: "the SlotManager kept a slot among the free ones when its TaskExecutor reported it taken (a request whose answer was lost)",
    13: "the same, with the report coming by heartbeat",
    42: "the same, late in the run",
    64: "co-located vertices with a blocking exchange between them made one region, which waited for its own result",
    88: "static workers that came while others were being started: only workers the manager starts itself count against slots.max",
    158: "the same, with doubted slots",
    4033: "a doubled slot request made a connection anew, and a late submission started a task on it before its JobMaster had answered",
}
