"""What tasks print and log, on its way to the program waiting for the job: a copy of each line, with the task's name, over a connection of its own.

A worker's standard output and error stay what they are (Ray's log files). In front of them stands a thin writer that asks which task is running and
hands the text on; a thread for each job sends it. Nothing here ever keeps a task waiting: what a slow client does not take in time is dropped and
counted, and a client that has gone is forgotten.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TextIO

from flinkpy.connectors.collect_sink import HEADER, KIND_BATCH, KIND_END, connect_to_client
from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.graph.deployment import TaskDeploymentDescriptor

LOG = logging.getLogger(__name__)

CLIENT = "$internal.client.output"
"""In a job's configuration: where its output goes, as an :class:`OutputAddress`; absent when nobody waits."""

QUEUE_CHARACTERS = 1 << 20
FRAME_CHARACTERS = 64 << 10
NAME_WIDTH = 60
STDOUT, STDERR = "1", "2"


@dataclass(frozen=True)
class OutputAddress:
    host: str
    port: int
    token: bytes
    named: bool = True  # a task's name before every line

    def __repr__(self) -> str:
        return f"OutputAddress({self.host}:{self.port})"


def name_of(descriptor: TaskDeploymentDescriptor) -> str:
    """``Map (2/4)``, with the middle of a long chain left out."""
    name = descriptor.task_name
    if len(name) > NAME_WIDTH:
        name = f"{name[:NAME_WIDTH // 2 - 1]} … {name[-NAME_WIDTH // 2 + 2:]}"
    return f"{name} ({descriptor.attempt_id.subtask_index + 1}/{descriptor.parallelism})"


class JobOutput:
    """What the tasks of one job in this process have said, and the thread that sends it. ``lines`` comes from any thread and never waits."""

    def __init__(self, address: OutputAddress) -> None:
        self._address = address
        self.tasks = 0
        self._changed = threading.Condition()
        self._queue: deque[tuple[str, str]] = deque()
        self._queued = self._dropped = 0
        self._finished = self._dead = False
        self._thread = threading.Thread(target=self._run, name="task output", daemon=True)
        self._thread.start()

    def lines(self, channel: str, name: str, text: str) -> None:
        """Whole lines. Those there is no room for are dropped."""
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
            self._changed.notify()

    def finish(self) -> None:
        """Nothing more will come; what is there is still sent."""
        with self._changed:
            self._finished = True
            self._changed.notify()

    def _run(self) -> None:
        try:
            sock = connect_to_client(self._address.host, self._address.port, self._address.token)
            sock.settimeout(None)
            with sock:
                while (frame := self._next()) is not None:
                    sock.sendall(HEADER.pack(KIND_BATCH, len(frame)) + frame)
                sock.sendall(HEADER.pack(KIND_END, 0))
        except Exception as error:  # the client went away, which is its right; the text is in this process's own log
            LOG.debug("the output of tasks goes to the log only: %s", error)
        finally:
            with self._changed:
                self._dead = True
                self._queue.clear()

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
                texts.append(f"[{self._dropped} lines were left out here: they came faster than this program took them]\n")
                self._dropped = 0
        return (channel + "".join(texts)).encode("utf-8", "replace")


class TaskOutput:
    """Of one worker process. ``running()`` names the task that the calling thread is running, if it runs one."""

    def __init__(self, running: Callable[[], TaskDeploymentDescriptor | None]) -> None:
        self._running = running
        self._jobs: dict[JobId, JobOutput] = {}
        self._partial: dict[tuple[ExecutionAttemptId, str], str] = {}
        self._lock = threading.Lock()

    def install(self) -> None:
        """Puts itself before this process's standard output and error."""
        sys.stdout = _Tee(sys.stdout, STDOUT, self)
        sys.stderr = _Tee(sys.stderr, STDERR, self)

    def deployed(self, descriptor: TaskDeploymentDescriptor) -> None:
        """A task comes; the connection is made now, so that it stands when there is something to say."""
        address = descriptor.configuration.get(CLIENT)
        if not isinstance(address, OutputAddress):
            return
        with self._lock:
            job = self._jobs.get(descriptor.attempt_id.job_id)
            if job is None:
                job = self._jobs[descriptor.attempt_id.job_id] = JobOutput(address)
            job.tasks += 1

    def ended(self, descriptor: TaskDeploymentDescriptor) -> None:
        """A task that was deployed is gone."""
        job_id = descriptor.attempt_id.job_id
        job = self._jobs.get(job_id)
        if job is None:
            return
        for channel in (STDOUT, STDERR):
            rest = self._partial.pop((descriptor.attempt_id, channel), "")
            if rest:
                job.lines(channel, name_of(descriptor), rest + "\n")
        with self._lock:
            job.tasks -= 1
            if job.tasks == 0:
                del self._jobs[job_id]
                job.finish()

    def take(self, channel: str, text: str) -> None:
        """Text that somebody in this process wrote. Of threads that run no task it is taken when it can only be of one job."""
        if not self._jobs or not text:
            return
        descriptor = self._running()
        if descriptor is None:
            self._of_no_task(channel, text)
            return
        job = self._jobs.get(descriptor.attempt_id.job_id)
        if job is None:
            return
        key = (descriptor.attempt_id, channel)
        whole, newline, rest = (self._partial.pop(key, "") + text).rpartition("\n")
        if newline:
            job.lines(channel, name_of(descriptor), whole + "\n")
        if rest:
            self._partial[key] = rest[-QUEUE_CHARACTERS:]

    def _of_no_task(self, channel: str, text: str) -> None:
        jobs = list(self._jobs.values())
        if len(jobs) == 1 and text.strip():
            jobs[0].lines(channel, f"process {os.getpid()}", text.rstrip("\n") + "\n")


class _Tee:
    """Standard output, or error: what it was, and a copy."""

    def __init__(self, under: TextIO, channel: str, output: TaskOutput) -> None:
        self._under, self._channel, self._output = under, channel, output

    def write(self, text: str) -> int:
        count = self._under.write(text)
        self._output.take(self._channel, text)
        return count

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)
