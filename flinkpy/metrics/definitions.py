"""The metrics that the engine has: each one's name, scope and meaning, once. REST, exporters and
docs/metrics.md follow this table.

Names are Flink's. A name with dots stands in groups: REST tells
``Shuffle.Netty.Input.Buffers.inPoolUsage``, Prometheus has underscores there."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Scope(Enum):
    """What a metric is of; the value is the beginning of its name for Prometheus, behind
    ``flink_``."""

    JOB_MANAGER = "jobmanager"
    JOB = "jobmanager_job"
    TASK_MANAGER = "taskmanager"
    TASK = "taskmanager_job_task"
    OPERATOR = "taskmanager_job_task_operator"


class Kind(Enum):
    """What a metric's value is. A COUNTER only grows while its attempt runs, but for the program's
    own; a METER is the rate of a counter; a HISTOGRAM has Flink's statistics of the last values."""

    COUNTER = "counter"
    GAUGE = "gauge"
    METER = "meter"
    HISTOGRAM = "histogram"


class Definition(NamedTuple):
    """``rate_of`` names the counter of the same scope that a METER is the rate of."""

    name: str
    scope: Scope
    kind: Kind
    meaning: str
    rate_of: str = ""


_C, _G, _M, _H = Kind.COUNTER, Kind.GAUGE, Kind.METER, Kind.HISTOGRAM
IN, OUT = "Shuffle.Netty.Input.", "Shuffle.Netty.Output."


_PYTHON = (  # of each process, where Flink has Status.JVM
    ("Status.Python.Threads.Count", _G, "Threads of the process."),
    (
        "Status.Python.Memory.RSS",
        _G,
        "Bytes of memory that the process has; 0 where the system does not tell.",
    ),
    ("Status.Python.CPU.Time", _C, "Seconds of processor time that the process has used."),
    ("Status.Python.GarbageCollector.Count", _C, "Garbage collections, of all generations."),
    ("Status.Python.GarbageCollector.Collected", _C, "Objects that these have freed."),
)


ENTRIES = "numKeyValueStateEntries"
STATE_BYTES = "stateBytes"
SPILLED_BYTES = "spilledBytes"
MANAGED_USED = "managedMemoryUsed"
_KINDS = {
    "UpdateBefore": "those before an update (-U)",
    "UpdateAfter": "those after an update (+U)",
    "Delete": "those that are deleted (-D)",
}
OF_CHANGES = {  # metrics of rows that are no inserts: the kind of row
    f"num{kind}Records{way}": rows.rpartition("(")[2].rstrip(")")
    for way in ("In", "Out")
    for kind, rows in _KINDS.items()
}
ROCKSDB = {  # names of RocksDB's properties
    "rocksdb.estimate-num-keys": (
        "RocksDB's estimate of its entries; a map or a list may have many for one key."
    ),
    "rocksdb.estimate-live-data-size": "Bytes of these entries, as it estimates.",
    "rocksdb.live-sst-files-size": "Bytes of the files of its newest version.",
    "rocksdb.total-sst-files-size": "Bytes of all its files.",
    "rocksdb.cur-size-all-mem-tables": "Bytes that are written and not in a file yet.",
    "rocksdb.block-cache-usage": "Bytes of its cache for reading.",
}


def _all(
    scope: Scope, *rows: tuple[str, Kind, str] | tuple[str, Kind, str, str]
) -> list[Definition]:
    return [Definition(row[0], scope, *row[1:]) for row in rows]


DEFINITIONS: tuple[Definition, ...] = (
    *_all(
        Scope.JOB_MANAGER,
        ("numRegisteredTaskManagers", _G, "TaskExecutors that are registered."),
        ("numRunningJobs", _G, "Jobs that have not ended."),
        ("taskSlotsTotal", _G, "Slots of all TaskExecutors."),
        ("taskSlotsAvailable", _G, "Slots that no job has."),
        *_PYTHON,
    ),
    *_all(
        Scope.JOB,
        ("uptime", _G, "Milliseconds since the job has been running; 0 while it is not."),
        ("runningTime", _G, "The same, under Flink's newer name."),
        (
            "downtime",
            _G,
            (
                "Milliseconds since the job has been restarting or waiting for slots; 0 while it "
                "runs, -1 when it has ended."
            ),
        ),
        (
            "numRestarts",
            _G,
            "Restarts since the job was submitted, of the whole job or a part of it.",
        ),
        ("fullRestarts", _G, "The same, under Flink's older name."),
        ("numberOfCompletedCheckpoints", _G, "Checkpoints and savepoints that were completed."),
        (
            "numberOfFailedCheckpoints",
            _G,
            "Checkpoints and savepoints that were given up, for whatever reason.",
        ),
        ("numberOfInProgressCheckpoints", _G, "Checkpoints and savepoints under way."),
        ("totalNumberOfCheckpoints", _G, "The sum of these three."),
        (
            "lastCompletedCheckpointId",
            _G,
            (
                "The number of the newest checkpoint or savepoint that was completed; -1 without "
                "one."
            ),
        ),
        (
            "lastCheckpointDuration",
            _G,
            "Milliseconds that it took; -1 without one, as the next two.",
        ),
        (
            "lastCheckpointSize",
            _G,
            "Bytes of state that it wrote: with incremental checkpoints, what is new.",
        ),
        ("lastCheckpointFullSize", _G, "Bytes of all its state."),
    ),
    *_all(
        Scope.TASK_MANAGER,
        ("Status.Shuffle.Netty.TotalMemorySegments", _G, "Segments of network memory."),
        (
            "Status.Shuffle.Netty.AvailableMemorySegments",
            _G,
            "Segments that no batch in flight holds.",
        ),
        ("Status.Shuffle.Netty.UsedMemorySegments", _G, "Segments that batches in flight hold."),
        ("Status.Shuffle.Netty.TotalMemory", _G, "The same in bytes."),
        ("Status.Shuffle.Netty.AvailableMemory", _G, "The same in bytes."),
        ("Status.Shuffle.Netty.UsedMemory", _G, "The same in bytes."),
        ("Status.Flink.Memory.Managed.Used", _G, "Bytes of managed memory that are reserved."),
        ("Status.Flink.Memory.Managed.Total", _G, "Bytes of managed memory."),
        *_PYTHON,
        (
            "Status.Python.Memory.Limit",
            _G,
            "Bytes that options give the process; 0 where they do not say.",
        ),
        ("Status.Python.Memory.Arrow", _G, "Bytes in Arrow's pool."),
        ("Status.Python.Memory.RocksDB", _G, "Bytes of RocksDB's common cache and buffers."),
        (
            "Status.Python.Memory.State",
            _G,
            "Bytes of keyed state in memory, of all tasks here, as they last told (stateBytes).",
        ),
        ("numRunningTasks", _G, "Tasks that have not ended here."),
        ("Status.Network.bytesSent", _C, "Bytes sent to other processes over data connections."),
        ("Status.Network.bytesReceived", _C, "Bytes received from them."),
    ),
    *_all(
        Scope.TASK,
        ("numRecordsIn", _C, "Records that the task has taken from its gates; 0 for a source."),
        ("numRecordsInPerSecond", _M, "Its rate.", "numRecordsIn"),
        (
            "numRecordsOut",
            _C,
            (
                "Records that the task has written to the network; in a job that is one chain, "
                "those that its source has emitted."
            ),
        ),
        ("numRecordsOutPerSecond", _M, "Its rate.", "numRecordsOut"),
        ("numBytesIn", _C, "The sum of the next two."),
        ("numBytesInPerSecond", _M, "Its rate.", "numBytesIn"),
        (
            "numBytesInLocal",
            _C,
            (
                "Bytes of the batches that producers in the same process have written for this "
                "task, as numBytesOut counts them."
            ),
        ),
        ("numBytesInLocalPerSecond", _M, "Its rate.", "numBytesInLocal"),
        ("numBytesInRemote", _C, "Bytes that have come from other processes, as they were sent."),
        ("numBytesInRemotePerSecond", _M, "Its rate.", "numBytesInRemote"),
        (
            "numBytesOut",
            _C,
            (
                "Bytes in memory of the batches that the task has written: for rows an estimate "
                "from samples."
            ),
        ),
        ("numBytesOutPerSecond", _M, "Its rate.", "numBytesOut"),
        (
            "numBuffersInLocal",
            _C,
            "Batches that producers in the same process have written for this task.",
        ),
        ("numBuffersInLocalPerSecond", _M, "Its rate.", "numBuffersInLocal"),
        (
            "numBuffersInRemote",
            _C,
            "Batches, or parts of them, that have come from other processes.",
        ),
        ("numBuffersInRemotePerSecond", _M, "Its rate.", "numBuffersInRemote"),
        ("numBuffersOut", _C, "Batches that the task has written."),
        ("numBuffersOutPerSecond", _M, "Its rate.", "numBuffersOut"),
        ("busyTimeMsPerSecond", _G, "Milliseconds of a second in which the task worked."),
        ("idleTimeMsPerSecond", _G, "Milliseconds of a second in which the task waited for input."),
        (
            "backPressuredTimeMsPerSecond",
            _G,
            "Milliseconds of a second in which the task waited for its consumers.",
        ),
        (
            "softBackPressuredTimeMsPerSecond",
            _G,
            "The same: a task waits between two steps, and does its mail meanwhile.",
        ),
        (
            "hardBackPressuredTimeMsPerSecond",
            _G,
            "Always 0: no task waits for its consumers within a step.",
        ),
        (
            "accumulateBusyTimeMs",
            _C,
            "Milliseconds since the attempt began in which the task worked.",
        ),
        ("accumulateIdleTimeMs", _C, "Milliseconds in which it waited for input."),
        ("accumulateBackPressuredTimeMs", _C, "Milliseconds in which it waited for its consumers."),
        ("isBackPressured", _G, "1 while the task waits for its consumers, else 0."),
        (
            "currentInputWatermark",
            _G,
            (
                "The watermark that the task's inputs have reached together, in milliseconds; not "
                "for sources."
            ),
        ),
        (
            "checkpointAlignmentTime",
            _G,
            "Nanoseconds from the first barrier of the last checkpoint to its last one.",
        ),
        (
            "checkpointStartDelayNanos",
            _G,
            (
                "Nanoseconds from the beginning of the last checkpoint, at the JobManager, to its "
                "first barrier here."
            ),
        ),
        (
            "initializationTime",
            _G,
            (
                "Milliseconds from the attempt's deployment until it ran: its state is read, and "
                "its functions are opened."
            ),
        ),
        (
            "mailboxLatencyMs",
            _H,
            (
                "Milliseconds that a mail waited for the task's thread; one is sent each time "
                "metrics are read."
            ),
        ),
        (
            "mailboxMailsPerSecond",
            _M,
            ("Mails that the task has processed: timers, results of other threads, checkpoints."),
            "mailboxMails",
        ),
        ("mailboxQueueSize", _G, "Mails that wait."),
        (
            "numFiredTimers",
            _C,
            "Timers of process functions and of the general window operator that have fired.",
        ),
        (
            IN + "Buffers.inPoolUsage",
            _G,
            (
                "The share of the gates' segments that hold batches from other processes; 0 "
                "without such producers."
            ),
        ),
        (
            IN + "Buffers.inputQueueLength",
            _G,
            "Batches and control elements that wait in the gates.",
        ),
        (
            OUT + "Buffers.outPoolUsage",
            _G,
            "The share of the partitions' segments that hold batches.",
        ),
        (
            OUT + "Buffers.outputQueueLength",
            _G,
            "Batches and control elements that the consumers have not taken.",
        ),
    ),
    *_all(
        Scope.OPERATOR,
        ("numRecordsIn", _C, "Records into the operator."),
        ("numRecordsInPerSecond", _M, "Its rate.", "numRecordsIn"),
        ("numRecordsOut", _C, "Records that it has emitted, to side outputs too."),
        ("numRecordsOutPerSecond", _M, "Its rate.", "numRecordsOut"),
        *(
            (f"num{kind}Records{way}", _C, f"Of rows that change: {rows}, {where}.")
            for way, where in (("In", "into the operator"), ("Out", "out of it"))
            for kind, rows in _KINDS.items()
        ),
        (
            "currentInputWatermark",
            _G,
            (
                "The last watermark that has come to the operator, in milliseconds; from the "
                "first one on."
            ),
        ),
        (
            "currentOutputWatermark",
            _G,
            "The last watermark that it has emitted, in milliseconds; from the first one on.",
        ),
        (
            "watermarkLatency",
            _G,
            (
                "Of windows and joins of windows: how many milliseconds the clock is ahead of the "
                "operator's watermark."
            ),
        ),
        (
            "numLateRecordsDropped",
            _C,
            (
                "Of windows, joins of windows and patterns: records that came too late and were "
                "dropped."
            ),
        ),
        ("patternMatchedTimes", _C, "Of patterns: matches that were given."),
        (
            "numPatterns",
            _G,
            (
                "Of patterns that come and go: how many versions are looked for, those included "
                "that finish what they have begun."
            ),
        ),
        (
            "numPatternsRefused",
            _C,
            "Of patterns that come and go: updates that were refused in this attempt.",
        ),
        (
            "numPartialMatches",
            _G,
            "Of patterns: partial matches of all keys, and matches that wait.",
        ),
        (
            "maxPartialMatchesOfKey",
            _G,
            "Of patterns: the most partial matches that a key has had in this attempt.",
        ),
        ("lateRecordsDroppedRate", _M, "Its rate.", "numLateRecordsDropped"),
        ("numRecordsSend", _C, "Of sinks: records given to the sink's writer."),
        ("numRecordsSendPerSecond", _M, "Its rate.", "numRecordsSend"),
        (
            ENTRIES,
            _G,
            (
                "Of keyed state in memory: keys, those of each state and of each open window; for "
                "joins of windows, records."
            ),
        ),
        (
            STATE_BYTES,
            _G,
            (
                "Of keyed state in memory, windows among it: bytes, estimated from a few entries. "
                "Of joins, groups, top-n, windows and sinks of tables: those of the rows that "
                "they keep, in memory and in mapped files, and of what finds them."
            ),
        ),
        (
            SPILLED_BYTES,
            _G,
            (
                "Of operators in BATCH: bytes that did not fit into their memory, and were "
                "written to files under io.tmp.dirs in this attempt."
            ),
        ),
        (MANAGED_USED, _G, "Bytes of its slot's managed memory that the operator has reserved."),
        *((name, _G, f"Of keyed state in RocksDB: {meaning}") for name, meaning in ROCKSDB.items()),
        (
            "pendingRecords",
            _G,
            (
                "Of sources that know it (Kafka): records that are there and were not read, as "
                "far as the broker has told."
            ),
        ),
        (
            "currentFetchEventTimeLag",
            _G,
            (
                "Of sources whose records have timestamps: milliseconds from the last record's "
                "time to when it was polled."
            ),
        ),
        ("currentEmitEventTimeLag", _G, "The same to when the chain had taken it."),
    ),
)

BY_NAME: dict[tuple[Scope, str], Definition] = {
    (each.scope, each.name): each for each in DEFINITIONS
}


def of_scope(scope: Scope) -> tuple[Definition, ...]:
    """The table's rows of that scope."""
    return tuple(each for each in DEFINITIONS if each.scope is scope)
