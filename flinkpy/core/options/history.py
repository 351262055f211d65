"""Jobs that have ended: where they are archived, and the history server that shows them, under
Flink's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.ports import Ports
from flinkpy.core.options.rest import (
    REST_AUTHENTICATION,
    REST_CONNECTIONS,
    REST_TOKEN,
    RestAuthentication,
    RestConfig,
    tls_files,
)
from flinkpy.core.options.schema import option, read

ARCHIVE_FOLDER = option(
    "jobmanager.archive.fs.dir",
    str,
    None,
    (
        "The folder or URL in which each job that has ended is archived, for `flinkpy "
        "history` and `flinkpy list -a`. None are archived without it."
    ),
)
HISTORY_FOLDERS = option(
    "historyserver.archive.fs.dir",
    str,
    None,
    (
        "The folders whose archives `flinkpy history` shows, with commas between; when "
        "absent, that of jobmanager.archive.fs.dir."
    ),
)
HISTORY_REFRESH = option(
    "historyserver.archive.fs.refresh-interval",
    timedelta,
    timedelta(seconds=10),
    "How often it looks for new archives.",
    at_least=timedelta(),
)
HISTORY_RETAINED = option(
    "historyserver.archive.retained-jobs",
    int,
    -1,
    "How many jobs it keeps in each folder: it deletes the oldest. -1: all.",
    at_least=-1,
)
HISTORY_ADDRESS = option("historyserver.web.address", str, "localhost", "Where it listens.")
HISTORY_PORT = option(
    "historyserver.web.port",
    Ports,
    Ports.of(8082),
    "Its port; 0: a free one. Of a range (8082-8090) the first free one is taken.",
)
HISTORY_TLS = option(
    "historyserver.web.ssl.enabled",
    bool,
    False,
    (
        "Whether it speaks https, and only that, with the files of security.ssl.rest.keystore "
        "and so on."
    ),
)


@dataclass(frozen=True)
class HistoryConfig:
    """What the history server is started with."""

    folders: tuple[str, ...]
    rest: RestConfig
    refresh_s: float = 10.0
    retained: int | None = None

    @staticmethod
    def of(values: Mapping[str, Any]) -> HistoryConfig:
        """Raises ConfigurationError if there is no folder."""
        retained = read(values, HISTORY_RETAINED)
        needs_token = read(values, REST_AUTHENTICATION) is RestAuthentication.TOKEN
        rest = RestConfig(
            True,
            read(values, HISTORY_ADDRESS),
            read(values, HISTORY_PORT),
            needs_token,
            read(values, REST_TOKEN),
            tls_files(values, HISTORY_TLS),
            HISTORY_ADDRESS.key,
            HISTORY_PORT.key,
            read(values, REST_CONNECTIONS),
        )
        if retained == 0:
            raise ConfigurationError(
                f"option {HISTORY_RETAINED.key}: 0 would delete every archive; -1 keeps all, "
                "a number from 1 on that many"
            )
        return HistoryConfig(
            archive_folders(values),
            rest,
            read(values, HISTORY_REFRESH).total_seconds(),
            None if retained < 0 else retained,
        )


def archive_folders(values: Mapping[str, Any]) -> tuple[str, ...]:
    """Where archives are. Raises ConfigurationError if nothing says so."""
    folders = tuple(
        each.strip()
        for each in (read(values, HISTORY_FOLDERS) or read(values, ARCHIVE_FOLDER) or "").split(",")
        if each.strip()
    )
    if not folders:
        raise ConfigurationError(f"say where the archives are: -D {HISTORY_FOLDERS.key}=FOLDER")
    return folders
