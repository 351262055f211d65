"""Options of tables: each has an effect, or says that it has none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import flinkpy.common.foreign_options as foreign_options
import flinkpy.table
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.table import StreamTableEnvironment, TableConfig
from flinkpy.table.session_options import TABLE_OPTIONS

TABLE = Path(flinkpy.table.__file__).parent
READ_BY = [
    TABLE / "session",
    TABLE / "table_config.py",
    TABLE.parent / "cli" / "sql_client",
    TABLE.parent / "sql" / "plans" / "planner.py",
    TABLE.parent / "sql" / "plans" / "streaming_plans.py",
    TABLE.parent / "sql" / "physical" / "streaming_options.py",
]


def test_what_nothing_reads_is_an_option_without_effect() -> None:
    files = [
        file for place in READ_BY for file in ([place] if place.is_file() else place.glob("*"))
    ]
    text = "\n".join(file.read_text() for file in files if _may_read(file))
    unread = {each.name for each in TABLE_OPTIONS.options if f'"{each.name}"' not in text}
    silent = {each.name for each in TABLE_OPTIONS.options if each.without_effect is None}
    assert unread & silent == {"table.sql-dialect"}  # which has one value


def _may_read(file: Path) -> bool:
    return file.suffix == ".py" and file.name != "session_options.py"


def test_an_option_without_effect_is_named_once_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(foreign_options, "_told", set())
    config = TableConfig()
    with caplog.at_level(logging.WARNING):
        config.set("table.optimizer.join-reorder-enabled", "false")  # as it is
        assert not caplog.messages
        for _ in range(2):
            config.set("table.optimizer.join-reorder-enabled", "true")
    assert caplog.messages == [
        "options that have no effect here: table.optimizer.join-reorder-enabled (joins of BATCH are "
        "ordered by the sizes of files)"
    ]


def test_an_option_of_jobs_that_is_reset_is_for_later_jobs_as_the_program_had_it() -> None:
    env = StreamExecutionEnvironment.get_execution_environment({"parallelism.default": 2})
    tables = StreamTableEnvironment.create(env)

    def options_of_jobs() -> dict[str, str]:
        tables.to_changelog_stream(tables.sql_query("SELECT 1"))
        return env.get_configuration().to_dict()

    first = options_of_jobs()
    tables.execute_sql("SET 'parallelism.default' = '3'")
    tables.execute_sql("SET 'execution.state-recovery.path' = '/tmp/savepoint'")
    assert options_of_jobs() == {
        **first,
        "parallelism.default": "3",
        "execution.state-recovery.path": "/tmp/savepoint",
    }
    tables.execute_sql("RESET 'execution.state-recovery.path'")
    assert options_of_jobs() == {**first, "parallelism.default": "3"}
    tables.execute_sql("RESET")
    assert options_of_jobs() == first
    env.set_parallelism(4)  # without SET, the program's own is the last one
    assert options_of_jobs() == {**first, "parallelism.default": "4"}
