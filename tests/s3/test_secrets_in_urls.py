"""A job whose locations and exceptions have credentials: nobody who looks at it sees them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.ports import free_port
from tests.s3.server import Bucket
from tests.waiting import PATIENCE_S, eventually
from tests.web.rest import Rest

SECRETS = ("hidden-word-1", "hidden-word-2", "hidden-word-3", "hidden-word-4")
PROGRAM = """
import logging, pathlib, sys
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.connectors.discarding_sink import DiscardingSink

logging.basicConfig(level=logging.INFO)
FOLDER = pathlib.Path(sys.argv[1])

def fails(record):
    if record == 15 and not (FOLDER / "failed").exists():
        (FOLDER / "failed").touch()
        raise ValueError("no answer from https://user:hidden-word-3@api.example/v1?token=hidden-word-3")
    if (FOLDER / "end").exists():
        raise ValueError('refused: PlainLoginModule required username="flink" password="hidden-word-4";')
    return record

env = StreamExecutionEnvironment.get_execution_environment()
records = [(number, number) for number in range(100_000)]
env.from_source(PacedSource(records, 10, 1), source_name="numbers").map(fails).sink_to(DiscardingSink())
env.execute("orders")
"""


def everything(rest: Rest, value: Any, seen: set[str]) -> Iterator[bytes]:
    """What all routes answer that can be read, of this job and its cluster."""
    from starlette.routing import Route

    from flinkpy.web.routes import V1

    ids = {
        "jobid": value["jid"],
        "vertexid": value["vertices"][0]["id"],
        "subtaskindex": 0,
        "attempt": "0",
        "taskmanagerid": rest.get("/taskmanagers")["taskmanagers"][0]["id"],
    }
    history = rest.get(f"/jobs/{value['jid']}/checkpoints")["history"]
    for route in V1:
        if (
            isinstance(route, Route)
            and "GET" in (route.methods or ())
            and "cancel" not in route.path
            and "stop" not in route.path
        ):
            for checkpoint in history if "checkpointid" in route.param_convertors else [{"id": 1}]:
                known = {
                    **ids,
                    "checkpointid": str(checkpoint["id"]),
                    "triggerid": "mine",
                    "name": "log",
                }
                path = re.sub(r"\{(\w+)(?::\w+)?\}", r"{\1}", route.path).format_map(
                    defaultdict(lambda: "0", known)
                )
                seen.add(path)
                yield rest.text(path)[1]


@pytest.mark.wide
@pytest.mark.finding("faults 2")
def test_credentials_are_in_no_answer_no_archive_no_log_and_not_in_the_terminal(
    bucket: Bucket, tmp_path: Path
) -> None:
    rest, program = Rest(free_port()), tmp_path / "orders.py"
    program.write_text(PROGRAM)
    place = f"s3://hidden-word-1:hidden-word-2@{bucket.name}/checkpoints?{bucket.options}"
    options = {
        "rest.enabled": "true",
        "rest.port": rest.port,
        "rest.authentication": "NONE",
        "state.checkpoints.dir": place,
        "execution.checkpointing.interval": "100 ms",
        "jobmanager.archive.fs.dir": tmp_path / "archives",
        "restart-strategy.type": "fixed-delay",
        "restart-strategy.fixed-delay.attempts": 1,
        "restart-strategy.fixed-delay.delay": "1 ms",
        "rest.token": "hidden-word-4",
    }
    given = [word for key, value in options.items() for word in ("-D", f"{key}={value}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "flinkpy", "run", *given, str(program), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        eventually(lambda: process.poll() is not None or (answers(rest) and restarted(rest)))
        assert process.poll() is None, process.communicate()[0]
        [job] = rest.get("/jobs/overview")["jobs"]
        asked = rest.ask(
            f"/jobs/{job['jid']}/savepoints",
            "POST",
            {"target-directory": f"{place}/mine", "triggerId": "mine"},
        )
        assert asked.status == 202
        eventually(
            lambda: rest.get(f"/jobs/{job['jid']}/savepoints/mine")["status"]["id"] == "COMPLETED"
        )
        eventually(
            lambda: rest.get(f"/jobs/{job['jid']}/checkpoints")["latest"]["completed"] is not None
        )
        seen: set[str] = set()
        said = b"\n".join(everything(rest, rest.get(f"/jobs/{job['jid']}"), seen)).decode()
        latest = rest.get(f"/jobs/{job['jid']}/checkpoints")["latest"]["completed"]["external_path"]
    finally:
        (tmp_path / "end").touch()
        printed = process.communicate(timeout=PATIENCE_S)[0]
    [archive] = (tmp_path / "archives").iterdir()
    assert latest.startswith(f"s3://******@{bucket.name}/checkpoints/")
    assert "https://******@api.example/v1?token=******" in said
    assert 'password="******"' in printed
    for name, text in {
        "REST": said,
        "the archive": archive.read_text(),
        "the terminal and its log": printed,
    }.items():
        assert [secret for secret in SECRETS if secret in text] == [], f"{name}: {text}"
    assert (archive.stat().st_mode & 0o777, archive.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def answers(rest: Rest) -> bool:
    try:
        return bool(rest.get("/jobs/overview")["jobs"])
    except OSError:
        return False


def restarted(rest: Rest) -> bool:
    [job] = rest.get("/jobs/overview")["jobs"]
    return bool(rest.get(f"/jobs/{job['jid']}/exceptions")["exceptionHistory"]["entries"])
