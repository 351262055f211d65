"""Jobs that have ended are archived as files, and the history server answers of them as their
cluster did."""

from __future__ import annotations

import json
import math
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from flinkpy.actors.gateways import JobResult
from flinkpy.actors.job_store import ArchivedJob
from flinkpy.cli.shown import archived_jobs
from flinkpy.cli.shown.archived_jobs import archived_overviews
from flinkpy.cli.shown.shown_job import job_report
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.cluster.launch import connect
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.clock import SYSTEM_CLOCK, ManualClock
from flinkpy.core.errors import ConfigurationError, JobExecutionError
from flinkpy.core.ids import JobId
from flinkpy.core.lifecycles import ExecutionState, JobState
from flinkpy.core.options.history import HistoryConfig
from flinkpy.datastream import MapFunction
from flinkpy.state.checkpoints.local_file_store import LocalFileStore
from flinkpy.testing.environment import embedded_environment
from flinkpy.web.history.archive_files import read_archive, write_archive
from flinkpy.web.history.archives import Archives
from flinkpy.web.history.archiving import archive
from flinkpy.web.history.history_server import history_server
from tests.ports import free_port
from tests.web.rest import Rest

ATTEMPTS = {
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": "1",
    "restart-strategy.fixed-delay.delay": "1 ms",
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    try:
        yield tmp_path / "archives"
    finally:
        stop_embedded()


def divide(folder: Path, numbers: list[int], **options: str) -> str:
    """Runs a job that fails if 0 is among the numbers; its id. It is archived when this returns."""
    env = embedded_environment({"jobmanager.archive.fs.dir": str(folder), **ATTEMPTS, **options})
    env.from_collection(numbers).map(lambda n: 1 // n).sink_to(DiscardingSink())
    client = env.execute_async("divides")
    try:
        client.get_job_execution_result().result()
    except JobExecutionError:
        assert 0 in numbers
    return str(client.get_job_id())


def served(folder: Path, **options: Any) -> Any:
    values = {
        "historyserver.archive.fs.dir": str(folder),
        "historyserver.web.port": 0,
        "rest.authentication": "NONE",
        **options,
    }
    return history_server(HistoryConfig.of(values), SYSTEM_CLOCK)


def test_an_archive_holds_what_the_routes_of_the_ended_job_answer(folder: Path) -> None:
    port = free_port()
    job_id = divide(
        folder,
        [1, 0],
        **{"rest.enabled": "true", "rest.port": str(port), "rest.authentication": "NONE"},
    )
    rest = Rest(port)
    archive = read_archive(LocalFileStore(), str(folder), JobId(job_id))
    answered = {path: json.loads(answer) for path, answer in archive.items()}
    assert len(answered) > 15
    live = {
        path: rest.get(path + asked_for(answered[path]) if path.endswith("/metrics") else path)
        for path in answered
    }
    assert {
        path for path in answered if live[path] != answer_without_others(answered[path], live[path])
    } == set()
    assert (
        f"/jobs/{job_id}/vertices/{vertex_of(answered, job_id)}/subtasks/0/attempts/0" in answered
    )
    assert (
        answered[f"/jobs/{job_id}/vertices/{vertex_of(answered, job_id)}/subtasks/0/attempts/1"][
            "status"
        ]
        == "FAILED"
    )
    assert len(answered[f"/jobs/{job_id}/exceptions"]["exceptionHistory"]["entries"]) == 2
    [subtask] = answered[f"/jobs/{job_id}/vertices/{vertex_of(answered, job_id)}/attempts"][
        "subtasks"
    ]
    assert [(each["attempt"], each["status"]) for each in subtask["attempts"]] == [
        (1, "FAILED"),
        (0, "FAILED"),
    ]
    assert all("ZeroDivisionError" in each["failure"] for each in subtask["attempts"])
    assert all(
        0 < each["timestamps"]["RUNNING"] <= each["timestamps"]["FAILED"]
        for each in subtask["attempts"]
    )


def asked_for(told: list[dict[str, str]]) -> str:
    return "?get=" + quote(",".join(each["id"] for each in told))


def vertex_of(answered: dict[str, Any], job_id: str) -> str:
    return str(answered[f"/jobs/{job_id}"]["vertices"][0]["id"])


def answer_without_others(archived: Any, live: Any) -> Any:
    """The cluster's overview has the jobs of others, too."""
    if isinstance(live, dict) and list(live) == ["jobs"]:
        return live if archived["jobs"][0] in live["jobs"] else archived
    return archived


def test_the_history_server_answers_as_the_cluster_did(folder: Path) -> None:
    first, second = divide(folder, [1]), divide(folder, [0])
    server = served(folder)
    try:
        rest = Rest(server.port)
        assert [(each["jid"], each["state"]) for each in rest.get("/jobs/overview")["jobs"]] == [
            (second, "FAILED"),
            (first, "FINISHED"),
        ]
        assert rest.get("/v1/jobs")["jobs"] == [
            {"id": second, "status": "FAILED"},
            {"id": first, "status": "FINISHED"},
        ]
        assert rest.get(f"/v1/jobs/{first}") == rest.get(f"/jobs/{first}")
        assert rest.get(f"/jobs/{first}")["state"] == "FINISHED"
        assert (
            "ZeroDivisionError"
            in rest.get(f"/jobs/{second}/exceptions")["exceptionHistory"]["entries"][0][
                "stacktrace"
            ]
        )
        assert rest.get("/config")["features"]["web-history"] is True
        assert (rest.get("/overview")["jobs-failed"], rest.get("/overview")["taskmanagers"]) == (
            1,
            0,
        )
        assert rest.ask(f"/jobs/{first}/nothing").status == 404
        assert rest.ask(f"/jobs/{'0' * 32}").status == 404
        assert rest.ask("/jobs/../../etc/passwd").status == 404
        assert rest.ask(f"/jobs/{first}", "PATCH").status == 405
    finally:
        server.stop()


class Told(MapFunction):
    def open(self, runtime_context: Any) -> None:
        self.seen = runtime_context.get_metrics_group().counter("seen")
        runtime_context.add_accumulator("numbers", [])
        self.context = runtime_context

    def map(self, value: int) -> int:
        self.seen.inc()
        self.context.get_accumulator("numbers").append(value)
        return value


def test_the_history_tells_the_last_metrics_and_the_accumulators(folder: Path) -> None:
    env = embedded_environment({"jobmanager.archive.fs.dir": str(folder)}, parallelism=2)
    env.from_collection([1, 2, 3]).rebalance().map(Told()).name("told").sink_to(DiscardingSink())
    client = env.execute_async("told")
    client.get_job_execution_result().result()
    job = str(client.get_job_id())
    stop_embedded()
    server = served(folder)
    try:
        rest = Rest(server.port)
        source, mapped = (vertex["id"] for vertex in rest.get(f"/jobs/{job}")["vertices"])
        path = f"/jobs/{job}/vertices/{mapped}"
        names = {each["id"] for each in rest.get(f"{path}/subtasks/0/metrics")}
        assert {
            "numRecordsIn",
            "numBytesIn",
            "accumulateBusyTimeMs",
            "told.seen",
            "mailboxLatencyMs_count",
        } <= names
        assert not [name for name in names if name.endswith("PerSecond")]
        assert rest.get(f"{path}/subtasks/metrics?get=told.seen,nothing&agg=sum") == [
            {"id": "told.seen", "sum": 3}
        ]
        assert [
            {**each, "value": "?"} for each in rest.get(f"{path}/metrics?get=1.numRecordsIn")
        ] == [{"id": "1.numRecordsIn", "value": "?"}]
        [written] = rest.get(f"/jobs/{job}/vertices/{source}/subtasks/0/metrics?get=numBytesOut")
        [read] = rest.get(f"{path}/subtasks/metrics?get=numBytesIn")
        assert int(written["value"]) == read["sum"] > 0
        assert rest.get(f"/jobs/{job}/metrics?get=numRestarts") == [
            {"id": "numRestarts", "value": "0"}
        ]
        [merged] = rest.get(f"{path}/accumulators")["user-accumulators"]
        assert (merged["name"], merged["type"], sorted(json.loads(merged["value"]))) == (
            "numbers",
            "list",
            [1, 2, 3],
        )
        assert [
            len(each["user-accumulators"])
            for each in rest.get(f"{path}/subtasks/accumulators")["subtasks"]
        ] == [1, 1]
        assert (
            rest.get(f"/jobs/{job}/execution-result")["job-execution-result"]["application-status"]
            == "SUCCEEDED"
        )
        options = {
            each["key"]: each["value"] for each in rest.get(f"/jobs/{job}/jobmanager/config")
        }
        assert options["jobmanager.archive.fs.dir"] == str(folder)
    finally:
        server.stop()


def test_the_history_server_needs_the_token(folder: Path) -> None:
    server = served(folder, **{"rest.authentication": "TOKEN", "rest.token": "known"})
    try:
        assert Rest(server.port).ask("/jobs").status == 401
        assert Rest(server.port).ask("/jobs", headers={"Authorization": "Bearer known"}).json == {
            "jobs": []
        }
    finally:
        server.stop()


def test_archived_jobs_are_listed_when_their_cluster_is_gone(folder: Path) -> None:
    job_id = divide(folder, [1])
    stop_embedded()
    [found] = archived_overviews({"jobmanager.archive.fs.dir": str(folder)})
    assert (found.job_id, found.name, found.state, sum(found.tasks.values())) == (
        job_id,
        "divides",
        JobState.FINISHED,
        1,
    )
    with pytest.raises(ConfigurationError, match="say where the archives are"):
        archived_overviews({})


def test_an_archive_that_cannot_be_written_is_told_and_does_not_keep_the_job_from_ending(
    folder: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that can be written when the cluster starts, and not when the job ends."""

    def refuses(*arguments: object) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("flinkpy.web.history.archiving.archive", refuses)
    try:
        job_id = divide(folder, [1])
        assert f"({job_id}) is not archived: " in caplog.text
    finally:
        stop_embedded()


def test_a_job_is_archived_once(folder: Path) -> None:
    """A JobManager that takes over archives what the one before may not have archived."""
    job_id = divide(folder, [1])
    before = (folder / job_id).stat()
    client = connect({"execution.target": "embedded", "jobmanager.archive.fs.dir": str(folder)})
    details = client.ask(lambda dispatcher: dispatcher.request_job_details(JobId(job_id)))
    archive(
        LocalFileStore(),
        str(folder),
        ArchivedJob(JobResult(JobId(job_id), "divides", JobState.FINISHED, 1), details),
    )
    assert (folder / job_id).stat() == before
    assert [file.name for file in folder.iterdir()] == [job_id]


def overview(number: int) -> dict[str, str]:
    told = {
        "jid": f"{number:032x}",
        "name": "job",
        "state": "FINISHED",
        "start-time": number,
        "end-time": number,
        "tasks": {state.name.lower(): 0 for state in ExecutionState},
    }
    return {
        "/jobs/overview": json.dumps({"jobs": [told]}),
        f"/jobs/{number:032x}": f'{{"jid": "{number:032x}"}}',
    }


def archived(folder: Path) -> Callable[..., None]:
    def write(*numbers: int) -> None:
        for number in numbers:
            write_archive(LocalFileStore(), str(folder), JobId(f"{number:032x}"), overview(number))

    return write


def test_new_archives_are_found_when_it_is_time_to_look_and_damaged_ones_are_left_out(
    tmp_path: Path,
) -> None:
    clock, write = ManualClock(), archived(tmp_path)
    archives = Archives([str(tmp_path)], clock, refresh_s=10)
    write(1)
    (tmp_path / f"{7:032x}").write_text("{")
    (tmp_path / "notes.txt").write_text("not ours")
    assert [each["end-time"] for each in archives.overviews()] == [1]
    write(2)
    clock.advance(9)
    assert [each["end-time"] for each in archives.overviews()] == [1]
    clock.advance(2)
    assert [each["end-time"] for each in archives.overviews()] == [2, 1]
    assert archives.answer(f"/jobs/{7:032x}") is None
    assert archives.answer(f"/jobs/{2:032x}") == f'{{"jid": "{2:032x}"}}'


@pytest.mark.parametrize(
    "damage",
    [
        {"jid": 5},
        {"jid": "0" * 32},
        {"name": None},
        {"state": "DONE"},
        {"state": ["FINISHED"]},
        {"end-time": None},
        {"end-time": "now"},
        {"end-time": True},
        {"end-time": math.nan},
        {"start-time": {}},
        {"tasks": None},
        {"tasks": 5},
        {"tasks": {}},
        {"tasks": {"created": "many"}},
    ],
)
def test_an_archive_whose_overview_makes_no_sense_is_left_out(
    tmp_path: Path, damage: dict[str, Any]
) -> None:
    archived(tmp_path)(1)
    told = json.loads(overview(7)["/jobs/overview"])["jobs"][0]
    write_archive(
        LocalFileStore(),
        str(tmp_path),
        JobId(f"{7:032x}"),
        {"/jobs/overview": json.dumps({"jobs": [{**told, **damage}]})},
    )
    archives = Archives([str(tmp_path)], ManualClock())
    assert [each["end-time"] for each in archives.overviews()] == [1]
    assert archives.answer(f"/jobs/{7:032x}") is None


@pytest.mark.parametrize(
    "text",
    [
        "5",
        "[]",
        "null",
        '{"archive": 5}',
        '{"archive": [5]}',
        '{"archive": [{"path": "/jobs/overview", "json": 5}]}',
        '{"archive": [{"path": "/jobs/overview", "json": {}}]}',
        '{"archive": [{"path": [], "json": "{}"}]}',
        *(
            json.dumps({"archive": [{"path": "/jobs/overview", "json": told}]})
            for told in ("[]", "{}", "5", "", '{"jobs": null}', '{"jobs": [5]}', "[" * 100_000)
        ),
        "[" * 100_000,
    ],
)
def test_a_file_that_is_no_archive_is_left_out(tmp_path: Path, text: str) -> None:
    archived(tmp_path)(1)
    (tmp_path / f"{7:032x}").write_text(text)
    archives = Archives([str(tmp_path)], ManualClock())
    assert [each["end-time"] for each in archives.overviews()] == [1]


def test_what_is_damaged_after_it_was_listed_is_not_in_the_history(tmp_path: Path) -> None:
    archived(tmp_path)(1, 2)
    port = free_port()
    server = history_server(
        HistoryConfig.of(
            {
                "historyserver.archive.fs.dir": str(tmp_path),
                "historyserver.web.port": port,
                "rest.authentication": "NONE",
            }
        ),
        ManualClock(),
    )
    try:
        rest = Rest(port)
        assert len(rest.get("/jobs")["jobs"]) == 2
        (tmp_path / f"{1:032x}").write_text("5")
        write_archive_anew(tmp_path, 2, {f"/jobs/{2:032x}/metrics": "[5]"})
        assert (
            rest.ask(f"/jobs/{1:032x}").status
            == rest.ask(f"/jobs/{2:032x}/metrics?get=a").status
            == 404
        )
    finally:
        server.stop()


def write_archive_anew(folder: Path, number: int, more: dict[str, str]) -> None:
    (folder / f"{number:032x}").unlink()
    write_archive(
        LocalFileStore(), str(folder), JobId(f"{number:032x}"), {**overview(number), **more}
    )


def test_only_so_many_archives_are_kept_as_wanted(tmp_path: Path) -> None:
    archived(tmp_path)(3, 1, 2)
    archives = Archives([str(tmp_path)], ManualClock(), retained=2)
    assert [each["end-time"] for each in archives.overviews()] == [3, 2]
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{2:032x}", f"{3:032x}"]


def test_the_report_on_a_job_tells_its_attempts_and_failures(folder: Path) -> None:
    job_id = divide(folder, [1, 0])
    client = connect({"execution.target": "embedded", "jobmanager.archive.fs.dir": str(folder)})
    metrics = client.ask(lambda dispatcher: dispatcher.request_job_metrics(JobId(job_id)))
    report = "\n".join(
        job_report(
            client.ask(lambda dispatcher: dispatcher.request_execution_graph(JobId(job_id))),
            metrics,
        )
    )
    assert re.search(
        r"1 failed; \d+ records in, \d+ out; \d+ bytes in, \d+ out; busy for \d+\.\d s", report
    )
    assert "'divides': FAILED since" in report
    assert ", 1 restart\n" in report
    assert "subtask 0, attempt 0: FAILED on" in report
    assert report.count("UserCodeError in Source: Collection Source") == 2
    assert "(the job ended)" in report


def test_a_place_that_cannot_be_had_is_refused_with_the_name_of_its_option(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConfigurationError,
            match=rf"option historyserver.web.port: localhost:{port} cannot be had",
        ):
            served(tmp_path, **{"historyserver.web.port": port})
    with pytest.raises(
        ConfigurationError, match=r"option historyserver.web.address: 192.0.2.1 cannot be had"
    ):
        served(tmp_path, **{"historyserver.web.address": "192.0.2.1"})


def interrupted() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("has_jobs", [True, False])
def test_who_serves_folders_is_told_which_has_no_archives(
    tmp_path: Path,
    has_jobs: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(
        archived_jobs, "threading", SimpleNamespace(Event=lambda: SimpleNamespace(wait=interrupted))
    )
    if has_jobs:
        archived(tmp_path)(1)
    archived_jobs.serve_history(
        [f"historyserver.archive.fs.dir={tmp_path},{tmp_path}/mispelt", "historyserver.web.port=0"],
        None,
    )
    told = capsys.readouterr()
    assert told.out.startswith(f"history of {tmp_path}, {tmp_path}/mispelt: http://localhost:")
    lines = [
        (
            f"there are no archives in {folder} so far; clusters with "
            f"jobmanager.archive.fs.dir={folder} write them"
        )
        for folder in (str(tmp_path), f"{tmp_path}/mispelt")
    ]
    assert told.err.splitlines() == lines[has_jobs:]
