"""Seeds that once found something, and what. They are played first."""

from __future__ import annotations

REGRESSIONS: dict[int, str] = {
    3: "the SlotManager kept a slot among the free ones when its TaskExecutor reported it taken (a request whose answer was lost)",
    5: "a manifest did not say which subtasks had finished",
    10: "a cancelled task's thread for files wrote on after the end of its job, and the file stayed",
    13: "the same as in seed 3, with the report coming by heartbeat",
    42: "the same, late in the run",
    61: "a task wrote state for a checkpoint that was over, and died before it could say so: the file outlived the job",
    64: "co-located vertices with a blocking exchange between them made one region, which waited for its own result",
    88: "static workers that came while others were being started: only workers the manager starts itself count against slots.max",
    158: "the same, with doubted slots",
    1255: "a task had finished, and its thread for files wrote while the JobMaster removed what was left",
    4033: "a doubled slot request made a connection anew, and a late submission started a task on it before its JobMaster had answered",
}
