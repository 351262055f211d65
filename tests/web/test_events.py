"""What changes in jobs is told: to listeners of the program, in the log, and to a webhook."""

from __future__ import annotations

import http.server
import json
import logging
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.actors.job_events import EventKind, JobEvent
from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common import JobClient, JobExecutionResult, JobListener
from flinkpy.common.json_logs import JsonFormatter
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from flinkpy.core.ids import JobId
from flinkpy.core.options.events import WebhookConfig
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.environment import embedded_environment
from flinkpy.web.webhook import TRIES, Webhook


class Told(JobListener):
    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def on_job_submitted(self, job_client: JobClient | None, error: BaseException | None) -> None:
        self.calls.append(
            ("submitted", None if job_client is None else job_client.get_job_id(), type(error))
        )

    def on_job_executed(
        self, result: JobExecutionResult | None, error: BaseException | None
    ) -> None:
        self.calls.append(
            ("executed", None if result is None else result.get_job_id(), type(error))
        )


class Broken(JobListener):
    def on_job_submitted(self, job_client: JobClient | None, error: BaseException | None) -> None:
        raise ValueError("a fault of the listener's")


def divide(env: StreamExecutionEnvironment, number: int) -> None:
    env.from_collection([number]).map(lambda n: 1 // n).sink_to(DiscardingSink())


@pytest.fixture(autouse=True)
def stopped() -> Iterator[None]:
    yield
    stop_embedded()


def test_listeners_are_told_of_jobs_that_are_submitted_and_of_their_end() -> None:
    env, told = embedded_environment({"restart-strategy.type": "none"}), Told()
    env.register_job_listener(told)
    divide(env, 1)
    job_id = env.execute().get_job_id()
    divide(env, 0)
    with pytest.raises(JobExecutionError):
        env.execute()
    assert [call[0] for call in told.calls] == ["submitted", "executed"] * 2
    assert told.calls[:2] == [("submitted", job_id, type(None)), ("executed", job_id, type(None))]
    assert told.calls[3] == ("executed", None, JobExecutionError)
    divide(env, 1)
    env.execute_async().get_job_execution_result().result()
    assert [call[0] for call in told.calls[4:]] == ["submitted"]
    assert env.get_job_listeners() == [told]
    env.clear_job_listeners()
    divide(env, 1)
    env.execute()
    assert len(told.calls) == 5


@pytest.mark.parametrize("given", [Told, "told", None])
def test_what_is_no_listener_is_refused_at_once(given: Any) -> None:
    with pytest.raises(
        ProgramError, match="takes an object of a class derived from JobListener, this is"
    ):
        StreamExecutionEnvironment.get_execution_environment().register_job_listener(given)


def test_a_listener_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    env, told = embedded_environment(), Told()
    env.register_job_listener(Broken())
    env.register_job_listener(told)
    divide(env, 1)
    env.execute()
    assert [call[0] for call in told.calls] == ["submitted", "executed"]
    assert "a fault of the listener's" in caplog.text


def test_a_jobs_states_and_those_of_its_tasks_are_logged_with_the_event(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, logger="flinkpy.events"):
        env = embedded_environment({"restart-strategy.type": "none"})
        divide(env, 0)
        with pytest.raises(JobExecutionError):
            env.execute("divides")
    events = [record.event for record in caplog.records if hasattr(record, "event")]
    jobs = [each for each in events if each["kind"] == "job"]
    assert [each["state"] for each in jobs] == ["CREATED", "RUNNING", "FAILING", "FAILED"]
    assert "ZeroDivisionError" in jobs[-1]["reason"]
    tasks = [each["state"] for each in events if each["kind"] == "task"]
    assert tasks[-1] == "FAILED"
    assert {"DEPLOYING", "RUNNING"} <= set(tasks)
    assert [each["timestamp"] for each in events] == sorted(each["timestamp"] for each in events)
    record = next(record for record in caplog.records if hasattr(record, "event"))
    assert json.loads(JsonFormatter().format(record))["event"] == events[0]


@pytest.mark.wide
def test_on_request_the_log_is_lines_of_json(tmp_path: Path) -> None:
    program = tmp_path / "job.py"
    program.write_text(
        "from flinkpy.datastream import StreamExecutionEnvironment\n"
        "env = StreamExecutionEnvironment.get_execution_environment()\n"
        "env.from_collection([1]).print()\n"
        "env.execute('one')\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "flinkpy",
            "run",
            "-t",
            "embedded",
            "-D",
            "log.format=json",
            "-D",
            "client.progress=false",
            str(program),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    assert [each["event"]["state"] for each in told if each["logger"] == "flinkpy.events"] == [
        "CREATED",
        "RUNNING",
        "FINISHED",
    ]


class Receiver:
    """Takes what is posted; refuses the first few, with these bytes as the answer."""

    def __init__(self, refuses: int = 0, answer: bytes | None = None) -> None:
        posts: queue.Queue[tuple[dict[str, Any], str | None]] = queue.Queue()
        left = [refuses]

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                left[0] -= 1
                if left[0] < 0:
                    posts.put((body, self.headers["Authorization"]))
                elif answer is not None:
                    self.wfile.write(answer)
                    return
                self.send_response(503 if left[0] >= 0 else 204)
                self.end_headers()

            def log_message(self, *args: Any) -> None:
                pass

        self.posts = posts
        self._server = http.server.ThreadingHTTPServer(("localhost", 0), Handler)
        self.url = f"http://localhost:{self._server.server_port}/hook"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def event(state: str, kind: EventKind = EventKind.JOB) -> JobEvent:
    return JobEvent(1, kind, JobId("4f"), "words", state)


def test_a_webhook_gets_the_states_of_jobs_and_not_those_of_tasks(receiver: Receiver) -> None:
    env = embedded_environment(
        {"events.webhook.url": receiver.url, "events.webhook.token": "known"}
    )
    divide(env, 1)
    env.execute("divides")
    posts = [receiver.posts.get(timeout=30) for _ in range(3)]
    assert [(body["kind"], body["state"], body["jobName"]) for body, _ in posts] == [
        ("job", state, "divides") for state in ("CREATED", "RUNNING", "FINISHED")
    ]
    assert {token for _, token in posts} == {"Bearer known"}


def test_a_webhook_posts_again_what_was_not_taken_and_then_goes_on() -> None:
    receiver = Receiver(refuses=TRIES + 1)
    webhook = Webhook(WebhookConfig(receiver.url), pause=lambda seconds: None)
    try:
        for state in ("lost", "late", "last"):
            webhook.publish(event(state))
        webhook.publish(event("RUNNING", EventKind.TASK))
        webhook.close()
        assert [receiver.posts.get(timeout=30)[0]["state"] for _ in range(2)] == ["late", "last"]
        assert receiver.posts.empty()
    finally:
        receiver.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"no http\r\n\r\n",
        b"HTTP/1.1 200 " + b"x" * 100_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"",
    ],
)
def test_a_webhook_whose_answers_make_no_sense_gets_the_next_event(answer: bytes) -> None:
    receiver = Receiver(refuses=TRIES, answer=answer)
    webhook = Webhook(WebhookConfig(receiver.url), pause=lambda seconds: None)
    try:
        for _ in range(TRIES + 1):
            webhook.publish(event("RUNNING"))
        webhook.publish(event("last"))
        webhook.close()
        states = [receiver.posts.get(timeout=30)[0]["state"]]
        while states[-1] != "last":
            states.append(receiver.posts.get(timeout=30)[0]["state"])
    finally:
        receiver.close()


def test_a_redirection_does_not_take_the_token_elsewhere() -> None:
    asked: queue.Queue[str] = queue.Queue()

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.put(self.headers["Authorization"])

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.HTTPServer(("localhost", 0), Elsewhere) as elsewhere:
        thread = threading.Thread(target=elsewhere.serve_forever, daemon=True)
        thread.start()
        there = (
            "HTTP/1.1 302 Found\r\nLocation: "
            f"http://127.0.0.1:{elsewhere.server_port}/\r\nContent-Length: 0\r\n\r\n"
        ).encode()
        first = Receiver(refuses=TRIES, answer=there)
        webhook = Webhook(WebhookConfig(first.url, "known"), pause=lambda seconds: None)
        webhook.publish(event("RUNNING"))
        webhook.close()
        first.close()
        elsewhere.shutdown()
        thread.join()
    assert asked.empty()


def test_a_webhook_that_is_no_url_of_http_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="begins with http"):
        WebhookConfig.of({"events.webhook.url": "file:///etc/passwd"})
    assert WebhookConfig.of({}) is None


# -- levels ----------------------------------------------------------------------------------------

TELLS = (
    "from flinkpy.datastream import StreamExecutionEnvironment\n"
    "env = StreamExecutionEnvironment.get_execution_environment()\n"
    "env.from_collection([1]).print()\n"
    "env.execute('one')\n"
)


def logged(tmp_path: Path, *options: str) -> str:
    program = tmp_path / "job.py"
    program.write_text(TELLS)
    given = [part for option in ("client.progress=false", *options) for part in ("-D", option)]
    command = [sys.executable, "-m", "flinkpy", "run", "-t", "embedded", *given, str(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


@pytest.mark.wide
@pytest.mark.finding("gaps G20")
def test_levels_are_options_of_all_loggers_and_of_single_ones(tmp_path: Path) -> None:
    assert logged(tmp_path) == ""
    of_all = logged(tmp_path, "log.level=INFO")
    assert re.search(
        r"^\d{4}-.* INFO     flinkpy.events: job 'one' is RUNNING \([0-9a-f]{32}\)$",
        of_all,
        re.MULTILINE,
    ), of_all
    assert re.search(
        r"^\d{4}-.* INFO     flinkpy.resourcemanager: taskexecutor-.* is here: process",
        of_all,
        re.MULTILINE,
    )
    of_one = logged(tmp_path, "log.level.flinkpy.resourcemanager=INFO")
    assert {line.split()[3] for line in of_one.splitlines()} == {"flinkpy.resourcemanager:"}
    but_one = logged(tmp_path, "log.level=INFO", "log.level.flinkpy.events=ERROR")
    assert "flinkpy.resourcemanager" in but_one
    assert "flinkpy.events" not in but_one
    assert "option log.level.flinkpy.rpc: 'LOUD' is none of DEBUG, INFO" in logged(
        tmp_path, "log.level.flinkpy.rpc=LOUD"
    )
