"""What a job on Ray has been through is told while it runs, and when its session is gone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.ray_fixture import RayCluster, finish
from tests.waiting import eventually
from tests.web.rest import Rest

pytestmark = [pytest.mark.wide, pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(400)]

FAILS_ONCE = """
import sys
from pathlib import Path
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import StreamExecutionEnvironment

folder = Path(sys.argv[1])

def passed(number):
    if number == 20 and not (folder / "failed").exists():
        (folder / "failed").touch()
        raise ValueError("the twentieth record")
    if number == 40:
        (folder / "went-on").touch()
    return number

env = StreamExecutionEnvironment.get_execution_environment()
env.enable_checkpointing(200)
env.generate(lambda index: index, count=1_000_000, rate=50).map(passed).sink_to(DiscardingSink())
env.execute("fails once")
"""
SESSION = ("-D", "cluster.id=past")


def test_a_job_is_shown_while_it_runs_and_from_its_archive_when_its_session_is_gone(
    ray: RayCluster, tmp_path: Path
) -> None:
    archives = tmp_path / "archives"
    ray.flinkpy("session", "start", "-D", f"jobmanager.archive.fs.dir={archives}", "past")
    try:
        started = ray.flinkpy(
            "run",
            "-d",
            "-t",
            "ray-session",
            *SESSION,
            ray.job(FAILS_ONCE, "fails_once.py"),
            str(tmp_path),
        )
        found = re.search(r"job id ([0-9a-f]{32})\n", started.out)
        assert found is not None, started
        job_id = found[1]
        eventually((tmp_path / "went-on").exists)
        shown = ray.flinkpy("show", *SESSION, job_id[:8])
        assert (shown.code, shown.err) == (0, "")
        assert re.match(rf"{job_id} 'fails once': RUNNING since .*, 1 restart\n", shown.out), (
            shown.out
        )
        assert re.search(r"subtask 0, attempt 1: RUNNING on ", shown.out)
        assert re.search(
            (
                r"subtask 0, attempt 0: FAILED on .*: UserCodeError: ValueError: the twentieth "
                r"record"
            ),
            shown.out,
        ), shown.out
        assert re.search(
            r"checkpoints: \d+ complete, \d+ failed, \d+ under way, \d+ times restored", shown.out
        )
        assert re.search(r"fails_once.py", shown.out)
        cancelled = ray.flinkpy("cancel", *SESSION, job_id)
        assert cancelled.code == 0, cancelled
        eventually((archives / job_id).exists)
    finally:
        ray.flinkpy("session", "stop", "past")

    listed = ray.flinkpy("list", "-a", *SESSION, "-D", f"jobmanager.archive.fs.dir={archives}")
    assert re.search(rf"^{job_id} +CANCELED .* fails once$", listed.out, re.MULTILINE), listed
    assert "only archived jobs are shown" in listed.err
    server = ray.start(
        "history",
        "-D",
        f"historyserver.archive.fs.dir={archives}",
        "-D",
        "historyserver.web.port=0",
        "-D",
        "rest.token=known",
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        port = re.search(r"http://localhost:(\d+)/", line)
        assert port is not None, line
        rest, token = Rest(int(port[1])), {"Authorization": "Bearer known"}
        assert rest.ask("/jobs/overview").status == 401
        [job] = rest.ask("/v1/jobs/overview", headers=token).json["jobs"]
        assert (job["jid"], job["state"]) == (job_id, "CANCELED")
        assert (
            rest.ask(f"/jobs/{job_id}/checkpoints", headers=token).json["counts"]["completed"] > 0
        )
    finally:
        server.terminate()
        finish(server)
