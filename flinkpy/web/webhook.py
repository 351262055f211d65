"""The webhook: events are posted to a URL as JSON, by a thread of its own."""

from __future__ import annotations

import json
import queue
import threading
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from flinkpy.actors.job_events import EventKind, JobEvent
from flinkpy.core.options.events import WebhookConfig
from flinkpy.core.secrets.engine_logs import engine_logger

LOG = engine_logger(__name__)

KEPT = 1000  # events that wait; what comes beyond is dropped
TRIES, PAUSE_S, ANSWER_S = 3, 1.0, 10.0
CLOSE_S = 5.0


class Webhook:
    """Posts the events of jobs and checkpoints, one after the other, in their order. One that is
    not taken is tried again, and then dropped with a warning: no job waits for it. ``pause`` waits
    so many seconds between two tries, or less when the cluster ends."""

    def __init__(
        self, config: WebhookConfig, pause: Callable[[float], object] | None = None
    ) -> None:
        self._config = config
        self._waiting: queue.Queue[JobEvent | None] = queue.Queue(KEPT)
        self._ends = threading.Event()
        self._pause = pause or self._ends.wait
        self._thread = threading.Thread(target=self._run, name="webhook", daemon=True)
        self._thread.start()

    def publish(self, event: JobEvent) -> None:
        """Returns at once."""
        if event.kind is EventKind.TASK:
            return
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            LOG.warning("the webhook takes too long, and misses: %s", event.text)

    def close(self) -> None:
        """Posts what waits, for a few seconds at the most."""
        self._ends.set()
        try:
            self._waiting.put_nowait(None)
        except queue.Full:
            return
        self._thread.join(CLOSE_S)

    def _run(self) -> None:
        while True:
            event = self._waiting.get()
            if event is None:
                return
            self._post(event)

    def _post(self, event: JobEvent) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "flinkpy"}
        if self._config.token is not None:
            headers["Authorization"] = f"Bearer {self._config.token}"
        request = urllib.request.Request(
            self._config.url, json.dumps(event.as_json()).encode(), headers, method="POST"
        )
        for attempt in range(1, TRIES + 1):
            try:
                with _STRAIGHT.open(request, timeout=ANSWER_S):
                    return
            except (OSError, ValueError, HTTPException) as error:
                if attempt == TRIES:
                    LOG.warning("the webhook does not take an event (%s): %s", error, event.text)
                else:
                    self._pause(PAUSE_S)

    def __repr__(self) -> str:
        return f"<Webhook: {self._waiting.qsize()} events wait>"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirection is an error: the token is for one host only, and a post would become a read."""

    def redirect_request(self, *args: Any, **others: Any) -> None:
        return None


_STRAIGHT = urllib.request.build_opener(_NoRedirect)
