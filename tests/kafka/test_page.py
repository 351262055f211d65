"""What the page about Kafka shows, runs, with a broker."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kafka.broker import Broker
from tests.test_readme import ROOT, blocks


def test_the_page_about_kafka_prints_what_it_says(
    broker: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}
    for code, text in blocks(ROOT / "docs" / "kafka.md"):
        exec(compile(code.replace("localhost:9092", broker.bootstrap), "kafka.md", "exec"), names)
        assert sorted(capfd.readouterr().out.splitlines()) == sorted(text.splitlines())
