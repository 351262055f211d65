"""The page of connectors, docs/sql/connectors.md, whose tables are made of the factories' options:

python -m tests.table.factories.connector_page"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

from flinkpy.table.factories.files.file_table_formats import FORMATS
from flinkpy.table.factories.found_factories import CONNECTORS, INTERNAL, factory_of
from flinkpy.table.factories.table_options import TableOption

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sql" / "connectors.md"
HEAD = """# Connectors of tables

What `WITH (...)` of `CREATE TABLE` takes. Names, types and defaults are Flink's, but for the few that say otherwise; an option that is not known is an error that
names the nearest. A table needs `connector`. Secrets are hidden where a table is shown. This page is made from the factories
(`python -m tests.table.factories.connector_page`).
"""
TEXTS = {
    "filesystem": "Files of a folder, also on object stores ([files](../files.md)). `PARTITIONED BY (city)` are folders such as `city=Oslo`: a condition on such\n"
    "a column passes over folders. A job with checkpoints writes each row once.\n\n"
    "`INSERT OVERWRITE` (BATCH) replaces the table; of a table with partitions, those that get rows, or the one that `PARTITION (city = 'Oslo')` names in full.\n"
    "New files are visible before old ones are removed. With `sink.partition-commit.policy.kind` a partition that is complete gets a file `_SUCCESS`: a checkpoint after\n"
    "its time has come, and at the end of the job.\n\n"
    "METADATA columns tell the file of each row, but for the formats `raw`, `debezium-json` and `canal-json`: `file.path`, `file.name`, `file.size` (BIGINT) and\n"
    "`file.modification-time` (TIMESTAMP_LTZ(3)). Declare them VIRTUAL if rows are written, too.",
    "values": "Tables of tests, in the process of the program: `register_rows`, `results` and `wait_for_rows` of `flinkpy.testing.tables`.",
    "datagen": "Generated rows. A value is a function of the row's number, so a job that restarts goes on where it was. Options of a column are `fields.NAME.kind`\n"
    "(`random`, `sequence`), `.min`, `.max`, `.max-past`, `.length`, `.start`, `.end` and `.null-rate`;\nof what is in it `fields.NAME.element.min`, `fields.NAME.key.min`, `fields.NAME.value.min` and `fields.NAME.FIELD.min`.",
    "nexmark": "The events of the auction benchmark, with the columns `event_type`, `person`, `auction` and `bid`; with `kind`, the columns of one kind.",
    "print": "Prints each row with its kind: `+I[1, a]`.",
    "python": "A function that is asked for the rows of a key, in a [lookup join](time.md#lookup-joins). It cannot be read as a whole.",
    "blackhole": "Takes all rows and keeps none.",
    "kafka": "Topics of Kafka ([Kafka](../kafka.md)); needs the extra `flinkpy[kafka]`. Rows are only added, and a PRIMARY KEY is refused, unless the format of the\n"
    "messages tells changes: `debezium-json` and `canal-json` (with the options that [files](#debezium-json) of them have).",
    "upsert-kafka": "Topics whose messages are upserts: the value replaces the row of its key, and a message without a value deletes it. The key is the table's PRIMARY KEY,\n"
    "which it needs. Reading begins with the first message, and a message without a key fails the job. A row that is deleted is written as a message without a value;\n"
    "with `sink.parallelism` all changes of a key go to one writer. With both options `sink.buffer-flush` only the last row of each key of those gathered is written.",
}


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for name in CONNECTORS:
        if name in INTERNAL:
            continue
        factory = factory_of(name)
        ways = [word for word, can in (("read", factory.reads), ("written", factory.writes)) if can]
        ways = ["looked up"] if name == "python" else ways
        parts.append(f"## {name}\n\n{TEXTS[name]} It can be {' and '.join(ways)}.\n")
        parts.append(_table(factory.options))
    parts.append("## Formats of files\n")
    for name, format in FORMATS.items():
        parts.append(f"### {name}\n\n{' '.join((format.__doc__ or '').split())}\n")
        parts.append(_table(format.options, f"{name}."))
    return "\n".join(parts)


def _table(options: Iterable[TableOption], prefix: str = "") -> str:
    rows = [
        f"| `{prefix}{option.name}` | {option.kind.name} | {_default(option)} | {option.description} |"
        for option in options
    ]
    if not rows:
        return "It has no options of its own.\n"
    return "\n".join(["| option | type | default | what it says |", "|---|---|---|---|", *rows, ""])


def _default(option: TableOption) -> str:
    if option.required:
        return "required"
    value = option.default
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():g} s"
    return f"`{value}`" if value != "" else "an empty field"


if __name__ == "__main__":
    PAGE.write_text(page())
