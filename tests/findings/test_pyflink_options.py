"""Options of Flink and PyFlink: kept with one warning where the program was written for PyFlink,
refused as typos elsewhere."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

from flinkpy.cluster.option_sources import load_settings
from flinkpy.common import foreign_options, pyflink_imports
from flinkpy.core.errors import ConfigurationError, ProgramError
from flinkpy.datastream import StreamExecutionEnvironment

FLINKS_OWN = """
env:
  java:
    opts:
      all: --add-exports=java.base/sun.net.util=ALL-UNNAMED
jobmanager:
  bind-host: localhost
  rpc:
    address: localhost
    port: 6123
  memory:
    process:
      size: 1600m
  execution:
    failover-strategy: region
taskmanager:
  bind-host: localhost
  host: localhost
  numberOfTaskSlots: 2
  memory:
    process:
      size: 1728m
parallelism:
  default: 3
rest:
  address: localhost
web:
  timeout: 10000
"""
PYFLINKS = (
    "python.execution-mode",
    "python.fn-execution.bundle.size",
    "pipeline.jars",
    "state.backend.latency-track.keyed-state-enabled",
    "python.metric.enabled",
    "web.timeout",
    "my.own.key",
)


@pytest.fixture(autouse=True)
def untold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign_options, "_told", set())


@pytest.mark.finding("mechanisms F8", "pyflink options")
def test_flinks_own_configuration_file_is_read_and_unknown_options_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "config.yaml").write_text(FLINKS_OWN)
    with caplog.at_level(logging.WARNING):
        settings = load_settings(environ={"FLINKPY_CONF_DIR": str(tmp_path)})
        load_settings(conf=tmp_path, environ={})
    assert settings["parallelism.default"] == "3"
    assert settings["taskmanager.numberOfTaskSlots"] == "2"
    [record] = caplog.records
    assert "jobmanager.rpc.address" in record.getMessage()
    assert "parallelism.default" not in record.getMessage()


def test_a_wrong_value_in_flinks_own_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("parallelism.default: many\n")
    with pytest.raises(ConfigurationError, match=r"config\.yaml: option parallelism\.default"):
        load_settings(conf=tmp_path, environ={})


def test_flinkpys_own_file_comes_before_flinks(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("parallelism.default: 3\n")
    (tmp_path / "flinkpy-conf.yaml").write_text("parallelism.default: 5\n")
    assert load_settings(conf=tmp_path, environ={}) == {"parallelism.default": "5"}


@pytest.mark.finding("mechanisms F8", "pyflink options")
def test_under_pyflink_unknown_options_are_kept_with_one_warning_that_names_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    values = dict.fromkeys(PYFLINKS, "1")
    pyflink_imports.install()
    try:
        with caplog.at_level(logging.WARNING):
            env = StreamExecutionEnvironment.get_execution_environment(values)
            env.configure(values)
    finally:
        pyflink_imports.uninstall()
    assert {key: env.get_configuration().to_dict()[key] for key in PYFLINKS} == values
    [record] = caplog.records
    assert all(key in record.getMessage() for key in PYFLINKS)


def test_without_pyflink_an_unknown_option_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"did you mean 'parallelism\.default'"):
        StreamExecutionEnvironment.get_execution_environment({"paralelism.default": "2"})


@pytest.mark.wide
@pytest.mark.finding("mechanisms F8", "pyflink options")
def test_a_pyflink_program_that_sets_pyflinks_options_runs(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from pyflink.common import Configuration\n"
        "from pyflink.datastream import StreamExecutionEnvironment\n"
        "conf = Configuration()\n"
        "conf.set_string('python.execution-mode', 'process')\n"
        "env = StreamExecutionEnvironment.get_execution_environment(conf)\n"
        "env.from_collection([1, 2]).print()\n"
        "env.execute()\n"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-m",
            "flinkpy",
            "run",
            "--pyflink",
            "-D",
            "web.timeout=10000",
            str(program),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout) == (0, "1\n2\n"), run.stderr
    assert "web.timeout" in run.stderr
    assert "python.execution-mode" in run.stderr
