"""Mistakes in options and programs are told where they are made, with what was meant."""

from __future__ import annotations

import logging
from datetime import timedelta
from pathlib import Path

import pytest

from flinkpy.cli.script import find_script
from flinkpy.cli.shown.archived_jobs import archived_overviews, serve_history
from flinkpy.cli.sql_client.sql_session import read_script
from flinkpy.cluster.files.program_files import requirement_lines
from flinkpy.cluster.option_sources import load_settings, parse_definitions
from flinkpy.common.configuration import Configuration
from flinkpy.core.errors import ConfigurationError, ProgramError
from flinkpy.core.options.engine import RESTART_STRATEGY
from flinkpy.core.options.schema import SCHEMA, read
from flinkpy.core.secrets.hidden_secrets import shown_options
from flinkpy.datastream import StreamExecutionEnvironment

pytestmark = pytest.mark.finding("newcomers 11")


@pytest.mark.parametrize(
    ("definition", "meant"),
    [
        ("restart-strategy.type=fixd", "fixed-delay"),
        ("execution.checkpointing.storage=file", "filesystem"),
        ("execution.runtime-mode=BTCH", "BATCH"),
        ("state.backend.type=rocks", "rocksdb"),
    ],
)
def test_a_wrong_value_is_told_at_the_command_in_a_file_and_by_the_program(
    definition: str, meant: str, tmp_path: Path
) -> None:
    key, value = definition.split("=")
    message = rf"option {key}: '{value}' is none of .*; did you mean {meant}\?"
    with pytest.raises(ConfigurationError, match=f"-D: {message}"):
        load_settings(overrides=parse_definitions([definition]), environ={})
    file = tmp_path / "flinkpy-conf.yaml"
    file.write_text(f"{key}: {value}\n")
    with pytest.raises(ConfigurationError, match=f"{file}: {message}"):
        load_settings(conf=file, environ={})
    with pytest.raises(ConfigurationError, match=message):
        StreamExecutionEnvironment.get_execution_environment(Configuration({key: value}))


@pytest.mark.parametrize(
    ("written", "meant"),
    [("fixeddelay", "fixed-delay"), ("OFF", "none"), ("Exponential-Delay", "exponential-delay")],
)
def test_flinks_other_spellings_are_taken(written: str, meant: str) -> None:
    assert read({"restart-strategy": written}, RESTART_STRATEGY) == meant


def test_the_nearest_name_is_told_wherever_an_unknown_key_comes_from(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigurationError, match=r"did you mean 'parallelism\.default'\?"):
        StreamExecutionEnvironment.get_execution_environment(
            Configuration({"parallelism.defalt": "2"})
        )
    # Flink's own: most of its keys are right there, and mean nothing here
    file = tmp_path / "config.yaml"
    file.write_text("parallelism.defaults: 2\njobmanager.memory.process.size: 1600m\n")
    with caplog.at_level(logging.WARNING, "flinkpy"):
        load_settings(conf=file, environ={})
    told = caplog.messages[-1]
    assert "parallelism.defaults (did you mean 'parallelism.default'?)" in told
    assert "jobmanager.memory.process.size (" not in told


def test_a_file_of_data_is_no_program_and_is_named(tmp_path: Path) -> None:
    data = tmp_path / "x.parquet"
    data.write_bytes(b"PAR1\x00\x01")
    with pytest.raises(ProgramError, match=f"{data} is no Python program"):
        find_script(str(data))
    program = tmp_path / "job.py"
    program.write_text("print('ø')")
    assert find_script(str(program)) == program


def test_a_configuration_shows_durations_as_people_write_them() -> None:
    values = {"a": timedelta(seconds=3), "b": timedelta(milliseconds=1500), "c": True, "d": "3 s"}
    assert shown_options(values) == {"a": "3 s", "b": "1500 ms", "c": "true", "d": "3 s"}
    assert Configuration(values).to_dict() == {"a": "3 s", "b": "1500 ms", "c": "true", "d": "3 s"}


def test_a_command_that_names_no_session_is_told_those_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from flinkpy.cluster.ray import ray_sessions

    monkeypatch.setattr(ray_sessions, "program_environment", dict)
    key = ray_sessions.SessionKey("", "default")
    monkeypatch.setattr(
        ray_sessions,
        "living_hosts",
        lambda: ["jobmanager-saving", "taskexecutor-1", "jobmanager-nightly"],
    )
    told = ray_sessions._no_session(key)
    assert told == (
        "there is no flinkpy session 'default' on this Ray cluster; there is 'nightly', "
        "'saving': choose with -D cluster.id=nightly"
    )
    monkeypatch.setattr(ray_sessions, "living_hosts", list)
    assert (
        ray_sessions._no_session(key)
        == "there is no flinkpy session 'default' on this Ray cluster, so no jobs"
    )


@pytest.mark.parametrize(
    "definition",
    [
        "pipeline.max-parallelism=0",
        "pipeline.max-parallelism=-1",
        "pipeline.max-parallelism=32769",
        "parallelism.default=40000",
        "heartbeat.interval=0 s",
        "restart-strategy.exponential-delay.backoff-multiplier=0.5",
        "taskmanager.memory.network.fraction=1.5",
    ],
)
def test_a_number_out_of_its_range_is_told_at_the_command(definition: str) -> None:
    key = definition.partition("=")[0]
    with pytest.raises(ConfigurationError, match=rf"-D: option {key}: .* it must be at (le|mo)"):
        load_settings(overrides=parse_definitions([definition]), environ={})


def test_every_number_and_duration_says_its_range() -> None:
    without = {
        option.key
        for option in SCHEMA
        if option.kind in (int, float, timedelta)
        and not option.is_memory  # sizes are never negative
        and option.without_effect is None
        and option.at_least is None
    }
    assert without == {"metrics.latency.interval"}  # nothing is measured at 0 or less, as in Flink


def test_requirements_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    data, marked = tmp_path / "data", tmp_path / "marked.txt"
    data.write_bytes(b"\xff\xfe\x00")
    marked.write_text("\ufeffsix\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=f"{tmp_path} cannot be read: Is a directory; nam"):
        requirement_lines(str(tmp_path))
    with pytest.raises(ConfigurationError, match="data is no text in UTF-8"):
        requirement_lines(str(data))
    assert requirement_lines(str(marked)) == ["six"]


def test_a_script_of_sql_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    script = tmp_path / "report.sql"
    script.write_text("\ufeffSELECT 1;", encoding="utf-8")
    assert read_script(str(script)) == "SELECT 1;"


def test_a_file_is_no_folder_of_archives(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(ConfigurationError, match=f"{file} is a file; name the folder of the arch"):
        archived_overviews({"jobmanager.archive.fs.dir": str(file)})
    with pytest.raises(ConfigurationError, match=f"{file} is a file"):
        serve_history([f"historyserver.archive.fs.dir={file}"], None)
