"""Uses any Python object with ``write(value)`` as a sink."""

from __future__ import annotations

from typing import Any

from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.sinks.sink_port import Sink, SinkWriter
from flinkpy.operators.user_errors import user_code_error


class ObjectSink(Sink):
    """Calls ``target.write(value)`` for every record, in each subtask on its own copy of
    ``target``; also ``open()``, ``flush()`` and ``close()`` if the object has them. A plain
    callable is called in place of ``write``. Raises ProgramError for an object with neither.

    >>> class Lines:
    ...     def open(self): self.file = open("lines.txt", "a")
    ...     def write(self, value): self.file.write(f"{value}\\n")
    ...     def close(self): self.file.close()
    >>> stream.sink_to(ObjectSink(Lines()))  # doctest: +SKIP
    """

    takes_kinds = True  # a Row has its kind

    def __init__(self, target: Any) -> None:
        if not callable(getattr(target, "write", None)) and not callable(target):
            raise ProgramError(
                f"a {type(target).__name__} is no sink: it has no write(value) method and "
                "cannot be called"
            )
        self._target = target

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        return _ObjectWriter(loads(dumps(self._target, "the sink object")), context)

    def __repr__(self) -> str:
        return f"ObjectSink({type(self._target).__name__})"


class _ObjectWriter(SinkWriter):
    def __init__(self, target: Any, context: OperatorContext) -> None:
        self._target, self._context = target, context
        self._call("open")
        self._write = target.write if hasattr(target, "write") else target

    def _call(self, name: str) -> None:
        method = getattr(self._target, name, None)
        if callable(method):
            method()

    def write_batch(self, batch: Batch) -> None:
        write = self._write
        value: Any = None
        try:
            for value in rows_of(batch):
                write(value)
        except BaseException as error:
            raise user_code_error(error, self._context, value) from error

    def flush(self) -> None:
        self._call("flush")

    def close(self) -> None:
        self._call("close")
