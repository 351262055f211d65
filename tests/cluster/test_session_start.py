"""What a program says when the session that it starts does not come up."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray")

from flinkpy.cluster.ray import ray_sessions  # imports ray
from flinkpy.cluster.ray.ray_sessions import SessionKey
from flinkpy.core.errors import RecipientUnreachableError, ResourceUnavailableError
from flinkpy.core.futures import Future


def start(monkeypatch: pytest.MonkeyPatch, ready: Future[None]) -> None:
    host: Any = SimpleNamespace(ready=lambda: ready)
    monkeypatch.setattr(ray_sessions, "start_host", lambda *_, **__: host)
    ray_sessions._start(SessionKey("job", "blue"), {"client.timeout": "10 ms"}, None)


def test_a_session_that_is_late_names_the_option_that_waits_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ResourceUnavailableError) as caught:
        start(monkeypatch, Future())
    assert str(caught.value) == (
        "the flinkpy session 'blue' has not started on Ray within 0.01 s (client.timeout): "
        "`ray status` shows whether Ray has room for it"
    )


def test_a_session_that_fails_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ResourceUnavailableError, match=r"did not start on Ray: no such file"):
        start(monkeypatch, Future.failed(RecipientUnreachableError("no such file")))
