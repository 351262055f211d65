"""Flink's own command line lists, saves, stops and cancels jobs here.

Needs a Java and Flink's jars: `make test-flink` brings the jars, in the folder that FLINK_LIB
names."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from tests.ports import free_port
from tests.waiting import PATIENCE_S, eventually
from tests.web.rest import Rest, waiting_job


def jars() -> Path | None:
    """The folder with Flink's jars, if there is one."""
    if "FLINK_LIB" in os.environ:
        return Path(os.environ["FLINK_LIB"])
    pyflink = find_spec("pyflink")
    places = (
        []
        if pyflink is None
        else [Path(place) / "lib" for place in pyflink.submodule_search_locations or ()]
    )
    return next((place for place in places if any(place.glob("flink-dist-*.jar"))), None)


JAVA, JARS = shutil.which("java"), jars()
pytestmark = pytest.mark.skipif(
    JAVA is None or JARS is None,
    reason="needs java and the jars of the wheel apache-flink-libraries: make test-flink",
)


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(free_port()),
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
    }


@pytest.fixture(scope="module")
def rest(options: dict[str, Any]) -> Iterator[Rest]:
    try:
        yield Rest(int(options["rest.port"]))
    finally:
        stop_embedded()


@pytest.fixture
def job(rest: Rest, options: dict[str, Any]) -> Iterator[str]:
    with waiting_job(options) as client:
        job_id = str(client.get_job_id())
        eventually(lambda: rest.get(f"/jobs/{job_id}")["status-counts"]["RUNNING"] == 1)
        yield job_id


@pytest.fixture
def flink(rest: Rest, tmp_path: Path) -> Callable[..., str]:
    """Runs Flink's command line, and gives what it prints."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/config.yaml").write_text(
        f"rest:\n  address: localhost\n  port: {rest.port}\n"
    )

    def run(*words: str, code: int = 0) -> str:
        command = [
            str(JAVA),
            "-Xmx256m",
            "-cp",
            f"{JARS}/*",
            "org.apache.flink.client.cli.CliFrontend",
            *words,
        ]
        environment = {**os.environ, "FLINK_CONF_DIR": str(tmp_path / "conf")}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


def test_it_lists_a_job_and_cancels_it(rest: Rest, job: str, flink: Callable[..., str]) -> None:
    assert f"{job} : waiting (RUNNING)" in flink("list")
    assert f"Cancelled job {job}." in flink("cancel", job)
    eventually(lambda: rest.get(f"/jobs/{job}/status") == {"status": "CANCELED"})
    assert f"{job} : waiting (CANCELED)" in flink("list", "-a")


def test_it_takes_a_savepoint_and_a_checkpoint_and_stops_the_job_with_another(
    rest: Rest, job: str, flink: Callable[..., str], tmp_path: Path
) -> None:
    assert f"Savepoint completed. Path: {tmp_path}/savepoint-{job[:6]}" in flink(
        "savepoint", job, str(tmp_path)
    )
    assert f"Checkpoint 2 for job {job} completed." in flink("checkpoint", job)
    assert f"Savepoint completed. Path: {tmp_path}/stop/savepoint-{job[:6]}" in flink(
        "stop", "-p", str(tmp_path / "stop"), job
    )
    eventually(lambda: rest.get(f"/jobs/{job}/status") == {"status": "FINISHED"})


def test_it_tells_in_our_words_what_went_wrong(job: str, flink: Callable[..., str]) -> None:
    assert "SavepointError: the savepoint cannot be written to /dev/null/no" in flink(
        "savepoint", job, "/dev/null/no", code=1
    )
    assert f"there is no job {'0' * 32}" in flink("cancel", "0" * 32, code=1)
