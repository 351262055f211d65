"""What the writers of a job's sinks do, and when: each process appends to one file, which the
killer reads."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

OPENED, OUTPUT, VISIBLE = "opened", "output", "visible"


@dataclass(frozen=True)
class Attempt:
    """One attempt of one subtask of a sink."""

    sink: str
    subtask: int
    number: int


@dataclass(frozen=True)
class Entry:
    """An attempt opened its writer, wrote its first record, or committed its first records: when,
    by the machine's monotonic clock, and in which process."""

    at: float
    process: int
    what: str
    attempt: Attempt


class Journal:
    """Entries are short enough for the system to append each as a whole."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read = 0
        self._entries = list[Entry]()

    def add(self, what: str, attempt: Attempt) -> None:
        line = (
            f"{time.monotonic()} {os.getpid()} {what} {attempt.sink} {attempt.subtask} "
            f"{attempt.number}\n"
        )
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)

    def entries(self) -> list[Entry]:
        """All there are by now, in the order in which they were added."""
        if os.path.exists(self._path):
            with open(self._path) as file:
                file.seek(self._read)
                text = file.read()
            whole = text[: text.rfind("\n") + 1]
            self._read += len(whole)
            self._entries += [_entry(line) for line in whole.splitlines()]
        return self._entries

    def __reduce__(self) -> tuple[type[Journal], tuple[str]]:
        return Journal, (self._path,)

    def __repr__(self) -> str:
        return f"<Journal {self._path}: {len(self._entries)} entries>"


def _entry(line: str) -> Entry:
    at, process, what, sink, subtask, number = line.split()
    return Entry(float(at), int(process), what, Attempt(sink, int(subtask), int(number)))
