"""What tasks print, from a worker's standard output to the program's: over a real connection,
within this process."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

import pytest

from flinkpy.cluster.display.output_listener import make_printer, output_wanted
from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.core.ids import AllocationId, ExecutionAttemptId, JobId, JobVertexId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState
from flinkpy.graph.job_graph import JobGraph
from flinkpy.runtime.output.task_output import (
    CLIENT,
    STDERR,
    STDOUT,
    JobOutput,
    OutputAddress,
    TaskOutput,
    name_of,
)
from flinkpy.runtime.runner_port import TaskReporter


class Reports:
    """What the TaskExecutor is told."""

    def __init__(self) -> None:
        self.states: list[ExecutionState] = []

    def state_changed(self, state: TaskExecutionState) -> None:
        self.states.append(state.state)

    def send_message(self, *message: object) -> None:
        raise AssertionError


@dataclass
class Worker:
    """One whose standard output and error are real, and who runs the task a test says."""

    patch: pytest.MonkeyPatch
    log: io.StringIO = field(default_factory=io.StringIO)
    running: TaskDeploymentDescriptor | None = None
    reports: Reports = field(default_factory=Reports)

    def __post_init__(self) -> None:
        self.output = TaskOutput(
            lambda: self.running if threading.current_thread() is threading.main_thread() else None
        )
        self.own_stdout: TextIO | None = None

    def run(self, task: TaskDeploymentDescriptor, *texts: str) -> None:
        self.running = task
        for text in texts:
            print(text, end="")
        self.running = None

    def deploy(self, task: TaskDeploymentDescriptor) -> TaskReporter:
        # between a test's set-up and the test, pytest changes it
        if sys.stdout is not self.own_stdout:
            self.patch.setattr(sys, "stdout", self.log)
            self.patch.setattr(sys, "stderr", io.StringIO())
            self.patch.setattr(logging.getLogger(), "handlers", [])
            self.output.install()
            self.own_stdout = sys.stdout
        return self.output.deployed(task, self.reports)

    def own_log(self) -> str:
        """What has come out of the process, as Ray keeps it."""
        return self.log.getvalue()

    def end(self, task: TaskDeploymentDescriptor) -> None:
        self.output.ended(task)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """In this process, until the test ends."""
    root = logging.getLogger()
    engine = logging.getLogger("flinkpy")
    last_resort = logging.lastResort
    before = root.level, engine.level
    yield Worker(monkeypatch)
    root.setLevel(before[0])
    engine.setLevel(before[1])
    logging.lastResort = last_resort


@pytest.fixture
def client() -> Iterator[CollectServer]:
    with CollectServer(decode=lambda payload: payload.decode()) as server:
        yield server


def address_of(
    client: CollectServer, *, named: bool = True, level: int = logging.WARNING
) -> OutputAddress:
    return OutputAddress(client.host, client.port, client.token, named, level)


def task(
    to: OutputAddress | None, name: str = "Map", subtask: int = 0, job: str = "job"
) -> TaskDeploymentDescriptor:
    attempt = ExecutionAttemptId(JobId(job), JobVertexId(name), subtask, 0)
    return TaskDeploymentDescriptor(
        attempt,
        AllocationId("slot"),
        "job",
        name,
        2,
        128,
        b"",
        configuration={} if to is None else {CLIENT: to},
    )


def received(client: CollectServer) -> tuple[str, str]:
    """Everything that comes, after the job's end: of standard output, and of standard error."""
    client.job_ended()
    texts = list(client.batches())
    return "".join(text[1:] for text in texts if text[0] == STDOUT), "".join(
        text[1:] for text in texts if text[0] == STDERR
    )


def test_every_line_has_its_tasks_name_and_stays_in_the_workers_own_log(
    worker: Worker, client: CollectServer
) -> None:
    address = address_of(client)
    first, second = task(address), task(address, "Sink", 1)
    worker.deploy(first)
    worker.deploy(second)
    worker.run(first, "one\ntwo\n", "th")
    worker.run(second, "alpha\n")
    worker.run(first, "ree\n", "rest")
    worker.end(first)
    worker.end(second)
    out, err = received(client)
    assert (out, err) == (
        (
            "[Map (1/2)] one\n[Map (1/2)] two\n[Sink (2/2)] alpha\n[Map (1/2)] three\n[Map (1/2)] "
            "rest\n"
        ),
        "",
    )
    assert worker.own_log() == "one\ntwo\nthalpha\nree\nrest"


def test_plain_output_has_no_names(worker: Worker, client: CollectServer) -> None:
    plain = task(address_of(client, named=False))
    worker.deploy(plain)
    worker.run(plain, "one\n")
    worker.end(plain)
    assert received(client)[0] == "one\n"


def test_a_task_that_prints_and_ends_at_once_is_heard_before_its_end_is_told(
    worker: Worker, client: CollectServer
) -> None:
    """After the job's end nobody would wait for a connection that does not stand yet."""
    short = task(address_of(client))
    reporter = worker.deploy(short)
    worker.run(short, "at once\n")
    reporter.state_changed(TaskExecutionState(short.attempt_id, ExecutionState.FINISHED))
    assert worker.reports.states == [ExecutionState.FINISHED]
    assert received(client)[0] == "[Map (1/2)] at once\n"


def test_tasks_of_a_client_that_has_gone_end_all_the_same(worker: Worker) -> None:
    with CollectServer() as gone:
        address = address_of(gone)
    alone = task(address)
    reporter = worker.deploy(alone)
    worker.run(alone, "to nobody\n")
    reporter.state_changed(TaskExecutionState(alone.attempt_id, ExecutionState.FINISHED))
    assert worker.reports.states == [ExecutionState.FINISHED]
    assert worker.own_log() == "to nobody\n"


def test_jobs_do_not_see_each_others_output(worker: Worker, client: CollectServer) -> None:
    with CollectServer(decode=lambda payload: payload.decode()) as other:
        mine = task(address_of(client))
        theirs = task(address_of(other), job="other")
        silent = task(None, job="detached")
        for each in (mine, theirs, silent):
            worker.deploy(each)
        worker.run(mine, "mine\n")
        worker.run(theirs, "theirs\n")
        worker.run(silent, "silent\n")
        print("nobody's")
        for each in (mine, theirs, silent):
            worker.end(each)
        assert received(client)[0] == "[Map (1/2)] mine\n"
        assert received(other)[0] == "[Map (1/2)] theirs\n"


def test_other_threads_speak_for_the_only_task_or_for_the_process(
    worker: Worker, client: CollectServer
) -> None:
    """Those of asynchronous functions, and of libraries. Printing several values is several writes,
    and still a line."""
    address = address_of(client)
    first, second = task(address), task(address, "Sink")
    worker.deploy(first)
    elsewhere("alone", 1)
    worker.deploy(second)
    elsewhere("one of two", 2)
    worker.end(first)
    worker.end(second)
    assert received(client)[0] == f"[Map (1/2)] alone 1\n[process {os.getpid()}] one of two 2\n"


def elsewhere(*values: object) -> None:
    thread = threading.Thread(target=print, args=values)
    thread.start()
    thread.join()


def test_what_is_logged_comes_at_the_level_of_the_program(
    worker: Worker, client: CollectServer
) -> None:
    logger = logging.getLogger("mine")
    talkative = task(address_of(client, level=logging.INFO))
    logger.info("before")
    worker.deploy(talkative)
    worker.running = talkative
    logger.info("noted %d", 1)
    logger.debug("not wanted")
    logging.getLogger("flinkpy.anything").info("the engine's own")
    worker.running = None
    worker.end(talkative)
    logger.info("after")
    assert received(client) == ("", "[Map (1/2)] INFO:mine:noted 1\n")


def test_a_slow_client_costs_lines_and_is_told_how_many(
    worker: Worker, client: CollectServer
) -> None:
    fast = task(address_of(client))
    worker.deploy(fast)
    line = "x" * 1_000 + "\n"
    worker.run(fast, *[line * 100] * 100)
    worker.end(fast)
    out, _ = received(client)
    left_out = sum(map(int, re.findall(r"^\[(\d+) lines were left out here", out, re.MULTILINE)))
    assert out.count("x" * 1_000) + left_out == 10_000


def test_the_name_of_a_long_chain_leaves_out_its_middle() -> None:
    name = name_of(task(None, "Source: " + " -> ".join(f"Map {number}" for number in range(20)), 1))
    assert len(name) < 80
    assert name.startswith("Source: Map 0 -> ")
    assert name.endswith("Map 19 (2/2)")


def test_the_program_writes_it_to_what_standard_output_and_error_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out, err = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    printer = make_printer("127.0.0.1", {"client.task-output": "plain"})
    graph = printer.attach(JobGraph(JobId("job"), "job", [], {"parallelism.default": 2}))
    assert graph.configuration["parallelism.default"] == 2
    said = JobOutput(graph.configuration[CLIENT])
    said.lines(STDOUT, "Map", "result\n")
    said.lines(STDERR, "Map", "warning\n")
    said.settle()
    said.finish()
    printer.close()
    assert (out.getvalue(), err.getvalue()) == ("result\n", "warning\n")


def test_who_does_not_wait_wants_no_output() -> None:
    assert output_wanted({})
    assert not output_wanted({"execution.attached": False})
    assert not output_wanted({"client.task-output": "off"})
