"""Sends what tasks print and log to the program that waits for the job: a copy of each line, with
the task's name, over its own connection.

A worker's standard output and error still go where they went (Ray's log files). A thin writer in
front of them asks which task is running and passes the text on; a thread for each job sends it. A
task never waits for this: lines that a slow client does not take in time are dropped and counted,
and a client that has gone is forgotten. The one exception is a task that ends before the connection
is made: it waits a moment for it before its end is reported, because after the end of the job the
client no longer listens."""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO

from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.core.lifecycles import EXECUTION
from flinkpy.core.secrets.engine_logs import engine_logger
from flinkpy.graph.deployment import TaskDeploymentDescriptor, TaskExecutionState
from flinkpy.network.wire.client_channel import HEADER, KIND_BATCH, KIND_END, connect_to_client
from flinkpy.runtime.output.log_levels import LogLevels
from flinkpy.runtime.runner_port import TaskReporter

LOG = engine_logger(__name__)

CLIENT = "$internal.client.output"
"""In a job's configuration: where its output goes, as an :class:`OutputAddress`; absent when nobody
waits."""

QUEUE_CHARACTERS = 1 << 20
FRAME_CHARACTERS = 64 << 10
NAME_WIDTH = 60
CONNECT_WAIT_S = 1.0
STDOUT, STDERR = "1", "2"


@dataclass(frozen=True)
class OutputAddress:
    host: str
    port: int
    token: bytes
    named: bool = True  # a task's name before every line
    # of the program's root logger; what its tasks log below that is not sent
    level: int = logging.WARNING

    def __repr__(self) -> str:
        return f"OutputAddress({self.host}:{self.port})"


def name_of(descriptor: TaskDeploymentDescriptor) -> str:
    """``Map (2/4)``, with the middle of a long chain left out."""
    name = descriptor.task_name
    if len(name) > NAME_WIDTH:
        name = f"{name[: NAME_WIDTH // 2 - 1]} … {name[-NAME_WIDTH // 2 + 2 :]}"
    return f"{name} ({descriptor.attempt_id.subtask_index + 1}/{descriptor.parallelism})"


class JobOutput:
    """The output of one job's tasks in this process, and the thread that sends it. ``lines`` may be
    called from any thread and never waits."""

    def __init__(self, address: OutputAddress) -> None:
        self._address = address
        self.tasks = 0
        self._changed = threading.Condition()
        self._queue: deque[tuple[str, str]] = deque()
        self._queued = self._dropped = 0
        self._connected = self._finished = self._dead = False
        self._thread = threading.Thread(target=self._run, name="task output", daemon=True)
        self._thread.start()

    def lines(self, channel: str, name: str, text: str) -> None:
        """Queues whole lines; drops them if the queue is full."""
        if self._dead:
            return
        if self._address.named:
            prefix = f"[{name}] "
            text = prefix + text[:-1].replace("\n", f"\n{prefix}") + "\n"
        with self._changed:
            if self._queued + len(text) > QUEUE_CHARACTERS:
                self._dropped += text.count("\n")
                return
            self._queue.append((channel, text))
            self._queued += len(text)
            self._changed.notify_all()

    def settle(self) -> None:
        """If lines are queued, waits until the client is connected: it then listens to the end."""
        with self._changed:
            if self._queue:
                self._changed.wait_for(lambda: self._connected or self._dead, CONNECT_WAIT_S)

    def finish(self) -> None:
        """No more lines will come; those that are queued are still sent."""
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def _run(self) -> None:
        try:
            sock = connect_to_client(self._address.host, self._address.port, self._address.token)
            sock.settimeout(None)
            with self._changed:
                self._connected = True
                self._changed.notify_all()
            with sock:
                while (frame := self._next()) is not None:
                    sock.sendall(HEADER.pack(KIND_BATCH, len(frame)) + frame)
                sock.sendall(HEADER.pack(KIND_END, 0))
        except (
            Exception
        ) as error:  # the client went away, which it may; the text is in this process's own log
            LOG.debug("the output of tasks goes to the log only: %s", error)
        finally:
            with self._changed:
                self._dead = True
                self._queue.clear()
                self._changed.notify_all()

    def _next(self) -> bytes | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._finished)
            if not self._queue:
                return None
            channel, text = self._queue.popleft()
            texts, size = [text], len(text)
            while self._queue and self._queue[0][0] == channel and size < FRAME_CHARACTERS:
                texts.append(self._queue.popleft()[1])
                size += len(texts[-1])
            self._queued -= size
            if self._dropped and not self._queue:
                texts.append(
                    f"[{self._dropped} lines were left out here: they came faster than this "
                    "program took them]\n"
                )
                self._dropped = 0
        return (channel + "".join(texts)).encode("utf-8", "replace")


class TaskOutput:
    """The output of all tasks of one worker process. ``running()``: the task that the calling
    thread runs, if any."""

    def __init__(self, running: Callable[[], TaskDeploymentDescriptor | None]) -> None:
        self._running = running
        self._jobs: dict[JobId, JobOutput] = {}
        self._deployed: dict[ExecutionAttemptId, TaskDeploymentDescriptor] = {}
        # begun lines, of tasks and of other threads
        self._partial: dict[tuple[ExecutionAttemptId | int, str], str] = {}
        self._levels = LogLevels()
        self._lock = threading.Lock()

    def install(self) -> None:
        """Puts itself in front of this process's standard output and error, and lets log records be
        written there."""
        sys.stdout = _Tee(sys.stdout, STDOUT, self)
        sys.stderr = _Tee(sys.stderr, STDERR, self)
        self._levels.install()

    def deployed(
        self, descriptor: TaskDeploymentDescriptor, reporter: TaskReporter
    ) -> TaskReporter:
        """A task is deployed: connects to the client now, before there is something to send.
        Returns the reporter that the task is to use."""
        address = descriptor.configuration.get(CLIENT)
        if not isinstance(address, OutputAddress):
            return reporter
        with self._lock:
            job = self._jobs.get(descriptor.attempt_id.job_id)
            if job is None:
                job = self._jobs[descriptor.attempt_id.job_id] = JobOutput(address)
                self._levels.begin(address.level)
            job.tasks += 1
            self._deployed[descriptor.attempt_id] = descriptor
        return _Reporter(reporter, partial(self.ended, descriptor))

    def ended(self, descriptor: TaskDeploymentDescriptor) -> None:
        """A task that was deployed is about to report its end."""
        job_id = descriptor.attempt_id.job_id
        job = self._jobs.get(job_id)
        if job is None or self._deployed.pop(descriptor.attempt_id, None) is None:
            return
        self._flush(job, descriptor.attempt_id, name_of(descriptor))
        job.settle()
        with self._lock:
            job.tasks -= 1
            if job.tasks > 0:
                return
            del self._jobs[job_id]
            if not self._jobs:
                self._partial.clear()
                self._levels.end()
        job.finish()

    def _flush(self, job: JobOutput, who: ExecutionAttemptId | int, name: str) -> None:
        for channel in (STDOUT, STDERR):
            rest = self._partial.pop((who, channel), "")
            if rest:
                job.lines(channel, name, rest + "\n")

    def take(self, channel: str, text: str) -> None:
        """Takes text written by any thread of this process. A thread that runs no task counts for a
        job if it can only be of that one."""
        if not self._jobs or not text:
            return
        descriptor = self._running() or self._only_task()
        if descriptor is not None:
            job = self._jobs.get(descriptor.attempt_id.job_id)
            who = descriptor.attempt_id
            name = name_of(descriptor)
            self._pass_on(job, who, name, channel, text)
        elif len(self._jobs) == 1:
            self._pass_on(
                next(iter(self._jobs.copy().values()), None),
                threading.get_ident(),
                f"process {os.getpid()}",
                channel,
                text,
            )

    def _only_task(self) -> TaskDeploymentDescriptor | None:
        """The task, if it is alone here, to which threads of asynchronous functions and libraries
        belong."""
        return (
            next(iter(self._deployed.copy().values()), None) if len(self._deployed) == 1 else None
        )

    def _pass_on(
        self,
        job: JobOutput | None,
        who: ExecutionAttemptId | int,
        name: str,
        channel: str,
        text: str,
    ) -> None:
        """Passes on complete lines; the beginning of a line waits for its end."""
        if job is None:
            return
        key = (who, channel)
        whole, newline, rest = (self._partial.pop(key, "") + text).rpartition("\n")
        if newline:
            job.lines(channel, name, whole + "\n")
        if rest:
            self._partial[key] = rest[-QUEUE_CHARACTERS:]


class _Reporter:
    """Calls ``before_end`` before it reports the task's end."""

    def __init__(self, under: TaskReporter, before_end: Callable[[], None]) -> None:
        self._under, self._before_end = under, before_end
        self.send_message = under.send_message

    def state_changed(self, state: TaskExecutionState) -> None:
        if EXECUTION.is_terminal(state.state):
            self._before_end()
        self._under.state_changed(state)


class _Tee:
    """Standard output or error: writes to the original stream, and passes a copy on."""

    def __init__(self, under: TextIO, channel: str, output: TaskOutput) -> None:
        self._under = under
        self._channel = channel
        self._output = output

    def write(self, text: str) -> int:
        count = self._under.write(text)
        self._output.take(self._channel, text)
        return count

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)
