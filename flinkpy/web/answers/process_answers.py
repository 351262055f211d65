"""One process: its threads, its logs, the Python that runs it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from flinkpy.actors.inspector.inspector_gateway import LogFile, LogKind, ThreadInfo
from flinkpy.core.secrets.hidden_secrets import shown_options


def thread_dump(threads: Iterable[ThreadInfo]) -> dict[str, Any]:
    return {
        "threadInfos": [
            {
                "threadName": thread.name,
                "stringifiedThreadInfo": (
                    f'"{thread.name}"{" daemon" if thread.is_daemon else ""}\n{thread.stack}\n'
                ),
            }
            for thread in threads
        ]
    }


def logs(files: Iterable[LogFile]) -> dict[str, Any]:
    return {
        "logs": [
            {
                "name": file.name,
                "size": file.size,
                "mtime": file.modified_ms,
                "kind": file.kind.value,
            }
            for file in files
        ]
    }


def main_log(files: Iterable[LogFile]) -> LogFile | None:
    """The one that Python's logging goes into: a file of its own, else standard error."""
    return _first(files, LogKind.LOGGING, LogKind.STDERR)


def output(files: Iterable[LogFile]) -> LogFile | None:
    return _first(files, LogKind.STDOUT)


def _first(files: Iterable[LogFile], *kinds: LogKind) -> LogFile | None:
    return next((file for kind in kinds for file in files if file.kind is kind), None)


def environment() -> dict[str, Any]:
    """The environment of the process that answers, under Flink's names for the Java machine. Its
    environment variables are left out: they hold secrets."""
    version = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "jvm": {"version": version, "arch": platform.machine(), "options": []},
        "classpath": sys.path,
    }


def configuration(options: Mapping[str, Any]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in shown_options(options).items()]
