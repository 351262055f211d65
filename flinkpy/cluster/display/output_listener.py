"""Receives the output of tasks, in the program that waits for the job: listens for the workers
(``runtime.output.task_output``), and writes each line as it arrives."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TextIO

from flinkpy.connectors.collect.collect_server import CollectServer
from flinkpy.core.options.engine import ATTACHED, TASK_OUTPUT, OutputForm
from flinkpy.core.options.schema import read
from flinkpy.graph.job_graph import JobGraph
from flinkpy.runtime.output.task_output import CLIENT, STDERR, OutputAddress

QUEUE_BYTES = 1 << 20
DRAIN_TIMEOUT_S = 2.0  # after the job's end, for lines still in transit


def output_wanted(configuration: Mapping[str, Any]) -> bool:
    """Whether this program shows what its tasks print: it waits for the job, and
    ``client.task-output`` is not off."""
    return (
        bool(read(configuration, ATTACHED))
        and read(configuration, TASK_OUTPUT) is not OutputForm.OFF
    )


def make_printer(host: str, configuration: Mapping[str, Any]) -> OutputPrinter:
    """The printer for the configured form. ``host`` is this machine's address, reachable from the
    workers."""
    return OutputPrinter(host, named=read(configuration, TASK_OUTPUT) is OutputForm.NAMED)


class OutputPrinter:
    """Prints the task output of one job, from before its submission to its end, in a thread of its
    own."""

    def __init__(self, host: str, *, named: bool = True) -> None:
        self._server = CollectServer(host, queue_bytes=QUEUE_BYTES, decode=_text)
        self.address = OutputAddress(
            host,
            self._server.port,
            self._server.token,
            named,
            logging.getLogger().getEffectiveLevel(),
        )
        self._thread = threading.Thread(target=self._print, name="task output", daemon=True)
        self._thread.start()

    def attach(self, job_graph: JobGraph) -> JobGraph:
        """The job with this printer's address in its configuration."""
        return replace(job_graph, configuration={**job_graph.configuration, CLIENT: self.address})

    def close(self) -> None:
        """The job has ended: writes the lines still in transit, waiting a few seconds at most."""
        self._server.job_ended()
        self._thread.join(DRAIN_TIMEOUT_S)
        self._server.close()

    def _print(self) -> None:
        for text in self._server.batches():
            stream: TextIO = sys.stderr if text[0] == STDERR else sys.stdout
            try:
                stream.write(text[1:])
                stream.flush()
            except (OSError, ValueError):  # a broken pipe or a closed stream: the job goes on
                continue


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "replace")
