"""Seeds that once found something, and what. They are played first."""

from __future__ import annotations

REGRESSIONS: dict[int, str] = {
    3: (
        "the SlotManager kept a slot among the free ones when its TaskExecutor reported it "
        "taken (a request whose answer was lost)"
    ),
    5: "a manifest did not say which subtasks had finished",
    10: (
        "a cancelled task's thread for files wrote on after the end of its job, and the file stayed"
    ),
    13: "the same as in seed 3, with the report coming by heartbeat",
    42: "the same, late in the run",
    61: (
        "a task wrote state for a checkpoint that was over, and died before it could say so: "
        "the file outlived the job"
    ),
    64: (
        "co-located vertices with a blocking exchange between them made one region, which "
        "waited for its own result"
    ),
    88: (
        "static workers that came while others were being started: only workers the manager "
        "starts itself count against slots.max"
    ),
    158: "the same, with doubted slots",
    316: (
        "the store failed when a JobMaster asked who leads, and at the job's end all its "
        "files stayed"
    ),
    356: (
        "a TaskExecutor waited for ever to tell a JobMaster of its predecessor's task, and "
        "that JobMaster had ended"
    ),
    716: (
        "workers of the ResourceManager before came when others had been started in their "
        "place: more than slots.max"
    ),
    231: (
        "a worker whose JobManager died and came back without anybody noticing never asked "
        "again who leads, and registered nowhere for ever"
    ),
    252: "the same",
    1255: (
        "a task had finished, and its thread for files wrote while the JobMaster removed what "
        "was left"
    ),
    4033: (
        "a doubled slot request made a connection anew, and a late submission started a task "
        "on it before its JobMaster had answered"
    ),
}

# Seeds of real programs (``--programs``): the tests play so many from 0 on, and those that once
# found something
PROGRAM_SEEDS = 100
PROGRAM_REGRESSIONS: dict[int, str] = {
    8: (
        "a job ended while its cancellation was being kept, and who had cancelled it was told "
        "that there is no such job"
    ),
    391: "the same",
    835: (
        "a checkpoint was taken before a source's second reader had registered: after it, its "
        "split was read too late for its event time"
    ),
    228: "a job with its own checkpoints in memory claimed a savepoint, and never deleted it",
    749: (
        "a cancelled job that another JobMaster took over ended before its checkpoints were "
        "read, and those to be kept were deleted"
    ),
    20410: (
        "records in flight to windows of three subtasks had no place in one: the message said that "
        "the program had changed, and not what to set"
    ),
}

# Seeds of one program (``--programs NAME``) that once found something
REGRESSIONS_OF_PROGRAMS: dict[tuple[str, int], str] = {
    ("columnar-changes", 5031): (
        "a savepoint to stop with, after draining, was given up before a source's barrier: the "
        "source ended, and the next savepoint took it for read to its end"
    ),
    ("sql-q9", 1213): (
        "what a sink's writer had prepared for two checkpoints went to two subtasks of a job with "
        "more of them, and the later was committed first; before, no checkpoint of a job with "
        "keyed operators that had finished was ever complete"
    ),
    ("columnar-windows", 596): (
        "partial aggregates in flight met windows in one phase, after a job of two subtasks had "
        "started again with one"
    ),
}
