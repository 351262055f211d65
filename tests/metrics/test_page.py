"""The page of metrics, and the dashboard, tell of the metrics that there are."""

from __future__ import annotations

import json
import re

from flinkpy.metrics.definitions import DEFINITIONS
from tests.metrics.page import PAGE, written


def test_the_page_has_the_table_as_it_is() -> None:
    page = PAGE.read_text()
    assert page == written(page), "python -m tests.metrics.page writes it"


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    text = (PAGE.parents[1] / "grafana" / "dashboard.json").read_text()
    named = {f"flink_{each.scope.value}_{each.name.replace('.', '_')}" for each in DEFINITIONS}
    asked = {
        name
        for panel in json.loads(text)["panels"]
        for target in panel["targets"]
        for name in re.findall(r"flink_\w+", target["expr"])
    }
    assert asked
    assert asked <= named
