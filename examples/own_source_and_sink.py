"""A custom source and sink: reads log files line by line, and appends errors to a file per level.

    python examples/own_source_and_sink.py [FOLDER OUTPUT]    (without: three lines of its own)

The source says what can be read independently (one split per file) and how to read a split from a
position; subtasks share the splits. With ``blocking = True`` each split gets a thread that may wait
for a socket or a queue. The sink creates a writer in each subtask, which gets whole batches."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from flinkpy.common import Types
from flinkpy.connectors.sinks import Sink, SinkWriter, rows_of
from flinkpy.connectors.sources import PythonSource
from flinkpy.datastream import StreamExecutionEnvironment


class Logs(PythonSource):
    """The lines of all log files of a folder, as (file, level, message)."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = str(folder)

    def splits(self, parallelism: int) -> Iterable[str]:
        return sorted(str(path) for path in Path(self.folder).glob("*.log"))

    def read(self, split: str, position: int) -> Iterator[tuple[str, str, str]]:
        """``position`` is the number of lines of this file that were read already: 0, or more after
        a restore."""
        with open(split) as lines:
            for number, line in enumerate(lines):
                if number >= position:
                    level, _, message = line.rstrip("\n").partition(" ")
                    yield Path(split).name, level, message


class FilePerLevel(Sink):
    """(file, level, message), appended to LEVEL-SUBTASK.txt in a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = str(folder)

    def create_writer(self, context: Any) -> SinkWriter:
        return LevelWriter(Path(self.folder), context.task.subtask_index)


class LevelWriter(SinkWriter):
    def __init__(self, folder: Path, subtask: int) -> None:
        self.folder = folder
        self.subtask = subtask
        self.files = dict[str, Any]()
        folder.mkdir(parents=True, exist_ok=True)

    def write_batch(self, batch: Any) -> None:
        for file, level, message in rows_of(batch):
            if level not in self.files:
                self.files[level] = open(self.folder / f"{level}-{self.subtask}.txt", "a")  # noqa: SIM115  (closed in close)
            self.files[level].write(f"{file}: {message}\n")

    def close(self) -> None:
        for file in self.files.values():
            file.close()


def build(env: StreamExecutionEnvironment, folder: str | Path, output: str | Path) -> None:
    logs = env.from_source(
        Logs(folder), source_name="logs", type_info=Types.TUPLE([Types.STRING()] * 3)
    )
    logs.filter(lambda line: line[1] in ("ERROR", "WARNING")).sink_to(FilePerLevel(output)).name(
        "a file per level"
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as sample:
        Path(sample, "disk.log").write_text("INFO begun\nERROR full\nWARNING slow\n")
        folder, output = sys.argv[1:] or (sample, f"{sample}/output")
        build(environment := StreamExecutionEnvironment.get_execution_environment(), folder, output)
        environment.execute("errors of log files")
        print(
            "\n".join(
                f"{path.name}: {path.read_text().strip()}"
                for path in sorted(Path(output).iterdir())
            )
        )
