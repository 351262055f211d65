"""Part files, one series per subtask. A part is written under a hidden name and gets its own when the stream has ended well, so that a reader
of the directory never sees half a file."""

from __future__ import annotations

import os
from pathlib import Path

from flinkpy.connectors.file_formats import CsvFormat, FileFormat, JsonLinesFormat, ParquetFormat, PartWriter, TextFormat
from flinkpy.core.elements import Batch
from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import OperatorContext
from flinkpy.operators.sink_port import Sink, SinkWriter

_FORMATS: dict[str, type[FileFormat]] = {"text": TextFormat, "csv": CsvFormat, "json": JsonLinesFormat, "parquet": ParquetFormat}


class FileSink(Sink):
    """Writes into the directory ``path``: ``part-<job>-<subtask>.txt``, so that runs never overwrite each other. ``format`` is ``"text"``,
    ``"csv"``, ``"json"`` (lines), ``"parquet"``, or a FileFormat with options of its own. Subtasks that got no record write no file; a failed
    job leaves hidden files only, which readers pass over.

    >>> stream.sink_to(FileSink("out", format=CsvFormat(columns=["word", "count"])))  # doctest: +SKIP
    """

    def __init__(self, path: str | Path, format: str | FileFormat = "text", prefix: str = "part", suffix: str | None = None) -> None:
        if isinstance(format, str) and format not in _FORMATS:
            raise ProgramError(f"unknown file format {format!r}; there are {', '.join(_FORMATS)}")
        if os.path.isfile(path):
            raise ProgramError(f"{path} is a file; a file sink writes several parts and takes a directory")
        self._path = os.path.abspath(path)
        self._format = _FORMATS[format]() if isinstance(format, str) else format
        self._prefix = prefix
        self._suffix = self._format.suffix if suffix is None else suffix

    def create_writer(self, context: OperatorContext) -> SinkWriter:
        task = context.task
        os.makedirs(self._path, exist_ok=True)
        name = f"{self._prefix}-{task.attempt_id.job_id:.8}-{task.subtask_index}{self._suffix}"
        hidden = f".{name}.inprogress.{task.attempt_id.attempt}"
        return _FileWriter(self._format, os.path.join(self._path, hidden), os.path.join(self._path, name))

    def __repr__(self) -> str:
        return f"FileSink({self._path}, {type(self._format).__name__})"


class _FileWriter(SinkWriter):
    """One part file, begun with the first record."""

    def __init__(self, form: FileFormat, hidden: str, final: str) -> None:
        self._format, self._hidden, self._final = form, hidden, final
        self._part: PartWriter | None = None

    def write_batch(self, batch: Batch) -> None:
        if self._part is None:
            self._part = self._format.open(self._hidden)
        self._part.write(batch)

    def flush(self) -> None:
        if self._part is not None:
            self._part.flush()

    def finish(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.close()
            os.replace(self._hidden, self._final)

    def close(self) -> None:
        part, self._part = self._part, None
        if part is not None:
            part.close()
