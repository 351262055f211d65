"""Accumulators by REST: of a vertex over its subtasks, of each subtask, and of attempts that have
ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import MapFunction
from flinkpy.metrics.shown_accumulators import LONGEST, shown
from flinkpy.testing.environment import embedded_environment
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import Rest


class Odd:
    """An accumulator of the program's that has no text."""

    def __str__(self) -> str:
        raise ValueError("no text")


class Counting(MapFunction):
    """Fails at 0 in its first attempt."""

    def open(self, runtime_context: Any) -> None:
        self.context = runtime_context
        self.attempt = runtime_context.get_attempt_number()
        runtime_context.get_metrics_group().counter("not told here").inc()
        runtime_context.add_accumulator("seen", [])

    def map(self, value: int) -> int:
        self.context.get_accumulator("seen").append(value)
        if value == 0 and self.attempt == 0:
            raise ValueError("the first attempt fails")
        return value


@pytest.fixture
def rest() -> Iterator[Rest]:
    try:
        yield Rest(free_port())
    finally:
        stop_embedded()


def test_each_level_tells_its_own(rest: Rest) -> None:
    env = embedded_environment(
        {
            "rest.enabled": "true",
            "rest.authentication": "NONE",
            "rest.port": str(rest.port),
            "taskmanager.network.batch.max-records": "1",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1",
            "restart-strategy.fixed-delay.delay": "1 ms",
        },
        parallelism=2,
    )
    env.from_collection([5, 0]).map(Counting()).set_parallelism(1).rebalance().map(
        Counting()
    ).sink_to(DiscardingSink())
    client = env.execute_async("counts")
    job = str(client.get_job_id())
    assert rest.get(f"/jobs/{job}/execution-result")["status"]["id"] in ("IN_PROGRESS", "COMPLETED")
    eventually(lambda: rest.get(f"/jobs/{job}/status")["status"] == "FINISHED")
    first, second = (
        f"/jobs/{job}/vertices/{vertex['id']}" for vertex in rest.get(f"/jobs/{job}")["vertices"]
    )

    def values(found: dict[str, Any]) -> list[str]:
        return [each["value"] for each in found["user-accumulators"]]

    assert values(rest.get(f"{first}/accumulators")) == ["[5, 0]"]
    assert sorted(values(rest.get(f"{second}/accumulators"))[0]) == sorted("[5, 0]")
    subtasks = rest.get(f"{second}/subtasks/accumulators")
    assert subtasks["parallelism"] == 2
    assert sorted(value for each in subtasks["subtasks"] for value in values(each)) == [
        "[0]",
        "[5]",
    ]
    attempts = f"{first}/subtasks/0/attempts"
    assert (
        values(rest.get(f"{attempts}/0/accumulators")),
        values(rest.get(f"{attempts}/1/accumulators")),
    ) == (["[5, 0]"], ["[5, 0]"])
    assert rest.get(f"{attempts}/0/accumulators")["attempt"] == 0
    assert rest.ask(f"{attempts}/7/accumulators").status == 404
    assert rest.ask(f"/jobs/{job}/vertices/{'0' * 32}/accumulators").status == 404
    assert [
        each["name"] for each in rest.get(f"/jobs/{job}/accumulators")["user-task-accumulators"]
    ] == ["seen"]
    assert (
        rest.get(f"/jobs/{job}/execution-result")["job-execution-result"]["application-status"]
        == "SUCCEEDED"
    )


def test_what_is_long_or_has_no_text_is_told_all_the_same() -> None:
    found = {
        each.name: each
        for each in shown(
            {
                "text": "a" * 3 * LONGEST,
                "list": list(range(10**6)),
                "odd": Odd(),
                "sum": 3,
                "word": "b",
            }
        )
    }
    assert len(found["text"].text) == LONGEST + 1
    assert len(found["list"].text) < LONGEST
    assert found["list"].text.startswith("[0, 1, 2, ")
    assert (found["odd"].text, found["sum"].text, found["word"].text) == (
        "<Odd without text: ValueError>",
        "3",
        "b",
    )
