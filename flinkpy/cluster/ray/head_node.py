"""Whether Ray's head node still exists, for programs that wait.

Without it (its global control service) nothing new starts, and after a silent minute Ray ends every
process of the cluster, this one too. If the port refuses connections for a few seconds, the head is
gone; if it does not answer, the head may be busy."""

from __future__ import annotations

import os
import socket

from flinkpy.core.errors import ResourceUnavailableError

LOOK_EVERY_S = 1.0
GONE_AFTER_S = 3.0
CONNECT_TIMEOUT_S = 1.0
# Ray's own variable, set where the head can restart
RECONNECT_TIMEOUT = "RAY_gcs_rpc_server_reconnect_timeout_s"


class RayHead:
    """``address`` is host:port; ``gone`` is the message for the user."""

    def __init__(self, address: str, gone: str) -> None:
        self._address, self._gone = address, gone
        self._patience_s = float(os.environ.get(RECONNECT_TIMEOUT) or GONE_AFTER_S)
        self._look_at = 0.0
        self._refused_since: float | None = None

    def check_now(self) -> None:
        """Raises ResourceUnavailableError when the head refuses connections now: for callers with
        another sign that the cluster is gone."""
        if self._refuses():
            raise ResourceUnavailableError(self._gone)

    @property
    def is_gone(self) -> bool:
        """Whether the last check found the head node unreachable."""
        return self._refused_since is not None

    def check(self, now: float) -> None:
        """Checks from time to time; raises ResourceUnavailableError when the head has been
        unreachable for a while."""
        if now < self._look_at:
            return
        self._look_at = now + LOOK_EVERY_S
        if not self._refuses():
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= self._patience_s:
            raise ResourceUnavailableError(self._gone)

    def _refuses(self) -> bool:
        host, _, port = self._address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
        except ConnectionRefusedError:
            return True
        except OSError:
            return False
        return False
