"""A sink that prints records, as PyFlink's ``print()`` does."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch
from flinkpy.core.errors import OutputClosedError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter


class PrintSink(Sink):
    """Writes one line per record to standard output (or standard error): ``formatter(value)``, by
    default its ``str``. Batches are written whole.

    Lines begin with ``identifier:subtask> ``. The subtask (from 1) is left out at parallelism 1,
    the identifier if there is none."""

    def __init__(
        self,
        identifier: str | None = None,
        *,
        to_stderr: bool = False,
        formatter: Callable[[Any], str] = str,
    ) -> None:
        self._identifier = identifier
        self._to_stderr = to_stderr
        self._formatter = formatter

    @property
    def takes_kinds(self) -> bool:  # type: ignore[override]
        """Whether lines show a row's kind, which its ``str`` does not."""
        return self._formatter is not str

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        task = context.task
        parts = [self._identifier] if self._identifier else []
        if task.parallelism > 1:
            parts.append(str(task.subtask_index + 1))
        return _PrintWriter(
            ":".join(parts) + "> " if parts else "", self._to_stderr, self._formatter
        )

    def __repr__(self) -> str:
        return f"PrintSink({self._identifier or ''})"


class _PrintWriter(SinkWriter):
    def __init__(self, prefix: str, to_stderr: bool, formatter: Callable[[Any], str]) -> None:
        self._prefix = prefix
        self._to_stderr = to_stderr
        self._formatter = formatter

    def write_batch(self, batch: Batch) -> None:
        # Looked up for each batch, because the program, a test or a notebook may replace the
        # stream. One write, so that lines of other subtasks do not come in between.
        stream = sys.stderr if self._to_stderr else sys.stdout
        # a process without the stream, such as a service; print() writes nothing there either
        if stream is None:
            return
        prefix, text_of = self._prefix, self._formatter
        text = "".join([f"{prefix}{text_of(value)}\n" for value in rows_of(batch)])
        try:
            try:
                stream.write(text)
            except (
                UnicodeEncodeError
            ):  # a character that the terminal does not have is written as \u2603
                stream.write(
                    text.encode(stream.encoding, "backslashreplace").decode(stream.encoding)
                )
            stream.flush()
        except BrokenPipeError:
            _lead_nowhere(stream)
            raise OutputClosedError("nobody reads what the job prints any more") from None


def _lead_nowhere(stream: TextIO) -> None:
    """Points the stream to the null device, because what is left in its buffer would raise again at
    the interpreter's end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
