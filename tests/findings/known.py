"""The findings, by the review that made them and their number there; each is a program that went
wrong once.

``make findings`` runs every test that is marked with one of these names, and says which stand.
"""

from __future__ import annotations

FIRST_USE = {
    "1": "rows become columns or Parquet without cutting their numbers",
    "2": "a reduce, and a map that changes what it gave out, mean the same in every form",
    "3": "after a restart collected results come once",
    "4": "a SourceFunction's watermark is a watermark, and Watermark is in flinkpy.common",
    "5": "NaN and None mean the same as keys and in aggregates, of rows and of columns",
    "6": "JSON sinks write JSON: numpy scalars, bytes, sets, NaN",
    "7": "CSV keeps null and empty text apart, and reads other encodings",
    "8": "from_parquet reads the folders that by_value writes",
    "9": "an aggregate over running aggregates takes back what changed, or is refused",
    "10": "casts between timestamps and whole numbers have one unit",
    "11": "execute_async at the end of a program is awaited, or told",
    "12": "what a function yields moves on while it yields, and can be cancelled",
    "13": "a function that is slow in one subtask does not break connections",
    "14": "timers that register timers do not hold up the end",
    "15": "tables and collections in memory are handed over by reference",
    "16": "a union of columns with other schemas is refused where it is written",
    "17": "the examples' sink takes columns",
    "18": "epoch nanoseconds as event time are told what to change",
    "19": "advice names options that exist",
    "20": "Polars frames and other Arrow streams are taken, or pointed to what takes them",
    "21": "a reader that goes away ends the program without a traceback",
    "22": "flinkpy shell keeps advice, and its exit code tells of failed lines",
    "23": "every example runs without arguments",
    "24": "flinkpy stop does not advise to end the session",
    "25": "a session that another installation started is told",
    "26": "a Ray cluster that stays behind is told",
}
HUNTS = {
    "1": "keys of five and more columns are told apart",
    "2": "ceil and round of decimals keep their value",
    "3": "a decimal becomes the nearest float",
    "4": "nested records keep late fields on their way to Parquet",
    "5": "times of nanoseconds are keys like others",
    "6": "timestamps with a zone, texts and fractions are cast as rows cast them",
    "7": "replacing empty text ends",
    "8": "sums that fit are not refused",
    "9": "decimal arithmetic caps its precision",
    "10": "decimals from rows take the precision of all rows",
    "11": "types that fit are taken, others are refused where the program is built",
    "12": "casts of text, and texts of values, follow one page",
    "13": "running aggregates over columns are in the snapshot",
    "14": "harnesses take windows, joins, broadcast and asynchronous operators",
    "14b": "an instant from Spark goes back as an instant",
    "15": "a second Spark program runs on the same Ray cluster",
    "16": "empty columns, null structs and nested nullability go to Spark and back",
    "17": "a refused to_spark leaves nothing behind, and a stream is run once",
    "18": "many small jobs on Ray, and Spark's and Ray's ends, are quiet and clear",
}
MECHANISMS = {
    "F1": "a slow open() or first call does not fail the job",
    "F2": "a running job tells its accumulators",
    "F3": "operator ids tell sources apart, and a union's sides may change places",
    "F4": "Dispatcher and ResourceManager are fenced",
    "F5": "leadership is used",
    "F6": "operators are set up from the tail to the head",
    "F7": "a running job tells its busy, idle and back-pressured time",
    "F8": "PyFlink's own options are kept with a warning, and Flink's config.yaml is read",
    "F9": "flinkpy stop ends one job",
    "F10": "the simulation loses what masters say to each other",
}
PYFLINK = {
    "options": "options that flinkpy does not know are kept under --pyflink, with one warning",
    "rocksdb": "EmbeddedRocksDBStateBackend takes PyFlink's arguments",
    "environments": "archives and cached requirements have their effect when embedded",
    "min_by": "min_by and max_by take lists and dicts as keys in BATCH",
    "put_all": "put_all takes pairs",
    "jars": "add_jars and add_classpaths say what to do instead",
    "slot_sharing": "slot sharing groups refuse incomplete resources",
    "texts": "configurations and types compare and print as PyFlink's",
    "keywords": "methods take PyFlink's keyword names",
}
BUGS = {
    "1": "the end of input and a drain fire everything, also behind idle and paused sources",
    "2": "StopIteration in a user's function fails the job and names the record",
    "3": "INT96 timestamps beyond 1677 to 2262 are read as they are",
    "4": "frames hold whole numbers with nulls without rounding",
    "5": "CSV with escapes and decimal commas is read by options",
    "6": "an inferred column of times holds microseconds",
    "7": "a sink's own folder can be read back",
    "8": "python.files and its siblings work embedded",
    "9": "a byte that is not in the charset is one malformed line, and advice names what exists",
    "10": "small faults of formats are told rightly",
    "11": (
        "values that are no time, and values beyond Python's types, are told with record and column"
    ),
    "12": "coroutine functions that nobody would await are refused",
}
NEWCOMERS = {
    "1": "what is handed over as a table holds the last row of each key",
    "2": "a detached run waits until its job has initialised",
    "3": "a checkpoint folder that cannot be made fails the job at once",
    "4": "functions that block hold up neither their neighbours nor parallel subtasks",
    "5": "an extra that is missing is named with its install command",
    "6": "Types.TUPLE is a row with fields for the Parquet sink",
    "7": "ports take ranges",
    "8": "the first look at a job shows true figures",
    "9": "a pending checkpoint tells how long ago it was triggered",
    "10": "the JobManager's log tells of jobs, restarts, failures and checkpoints",
    "11": "mistakes in options are told at once, with the nearest name",
    "page": "the page's ten points",
}
FAULTS = {
    "1": "SIGTERM ends a JobManager and a worker within the grace period",
    "2": "credentials in URLs are hidden",
    "3": "RocksDB's log is bounded",
    "4": "lock files are the user's own and never followed or truncated",
    "5": "a running job's checkpoint is recognised by what its manifest says",
    "6": "odd Origin headers and large chunked bodies are client errors",
    "7": "clients are limited per address",
    "8": "RocksDB without enough file handles says so once and fails",
    "9": "six mutants are caught",
    "10": "Flink's own page works against our REST",
    "11": "set_db_storage_paths takes file URLs",
    "12": "processes log restarts on Ray",
    "13": "requirements embedded are told, and hasattr answers",
    "14": "PyFlink's own tests: what failed is right or told",
    "16": "masters and workers that die together are followed",
}
GAPS = {
    "G6": "manifests for containers and Kubernetes are valid",
    "G7": "rescaling takes over the checkpoint's max parallelism",
    "G8": "state files are written on several threads, in order for each subtask",
    "G9": "a blocked call is interrupted at cancellation",
    "G10": "options that do nothing say so",
    "G11": "the command line of PyFlink users",
    "G12": "an error that escapes from a master ends its process, and ticks go on",
    "G13": "files for functions reach the workers",
    "G20": "log levels are options",
}
REVIEWS = {
    "first-use": FIRST_USE,
    "hunts": HUNTS,
    "mechanisms": MECHANISMS,
    "pyflink": PYFLINK,
    "bugs": BUGS,
    "newcomers": NEWCOMERS,
    "faults": FAULTS,
    "gaps": GAPS,
}
KNOWN = {
    f"{review} {number}": sentence
    for review, findings in REVIEWS.items()
    for number, sentence in findings.items()
}
