"""The options of writing files: Flink's names, types and defaults."""

from __future__ import annotations

from datetime import timedelta

from flinkpy.columns.sql.sql_meanings.moments.java_formats import PLAIN_MOMENT
from flinkpy.table.factories.table_options import (
    DURATION,
    INT,
    MEMORY,
    STRING,
    ZONE,
    TableOption,
    one_of,
)

SINK_OPTIONS = (
    TableOption("sink.parallelism", INT, None, "How many writers there are."),
    TableOption("sink.rolling-policy.file-size", MEMORY, 128 << 20, "How large a file gets."),
    TableOption(
        "sink.rolling-policy.rollover-interval", DURATION, timedelta(minutes=30), "How old it gets."
    ),
    TableOption(
        "sink.rolling-policy.inactivity-interval",
        DURATION,
        timedelta(minutes=30),
        "How long nothing is written to it.",
    ),
    TableOption(
        "sink.rolling-policy.check-interval",
        DURATION,
        timedelta(minutes=1),
        "How often its age is looked at.",
    ),
    TableOption(
        "sink.partition-commit.policy.kind",
        STRING,
        None,
        "What says that a partition is complete: success-file. Without it nothing does.",
    ),
    TableOption(
        "sink.partition-commit.success-file.name", STRING, "_SUCCESS", "The name of that file."
    ),
    TableOption(
        "sink.partition-commit.trigger",
        one_of("process-time", "partition-time"),
        "process-time",
        "When a partition is complete: by the clock since its first row, or by its own time and "
        "the watermark.",
    ),
    TableOption(
        "sink.partition-commit.delay", DURATION, timedelta(), "How much later it is complete."
    ),
    TableOption(
        "sink.partition-commit.watermark-time-zone", ZONE, "UTC", "The zone of a partition's time."
    ),
    TableOption(
        "partition.time-extractor.timestamp-pattern",
        STRING,
        None,
        "How the columns make the partition's time: $day $hour:00:00. Without it the first does.",
    ),
    TableOption(
        "partition.time-extractor.timestamp-formatter",
        STRING,
        PLAIN_MOMENT,
        "The form of that time.",
    ),
)
