"""Metrics of running jobs, by REST and for Prometheus."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flinkpy.cluster.embedded import stop_embedded
from flinkpy.common import WatermarkStrategy
from flinkpy.common.time import Time
from flinkpy.connectors.discarding_sink import DiscardingSink
from flinkpy.datastream import KeyedProcessFunction, MapFunction
from flinkpy.datastream.window import TumblingEventTimeWindows
from flinkpy.metrics.definitions import BY_NAME, ROCKSDB, Kind, Scope, of_scope
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.environment import embedded_environment
from tests.ports import free_port
from tests.waiting import eventually
from tests.web.rest import GO, Rest, held_job, waiting_job

OF_ROWS_THAT_CHANGE = {
    f"num{kind}Records{way}"
    for kind in ("UpdateBefore", "UpdateAfter", "Delete")
    for way in ("In", "Out")
}
OF_TABLES = {"stateBytes", "spilledBytes"}
OF_PATTERNS = {
    "patternMatchedTimes",
    "numPartialMatches",
    "maxPartialMatchesOfKey",
    "numPatterns",
    "numPatternsRefused",
}

REACHED = 18_999  # the watermark behind 20 records
LATE = 10  # records that come behind the first checkpoint


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return {
        "rest.enabled": "true",
        "rest.authentication": "NONE",
        "rest.port": str(free_port()),
        "execution.checkpointing.interval": "1 h",
        "execution.checkpointing.dir": str(tmp_path_factory.mktemp("checkpoints")),
        "taskmanager.network.batch.max-records": "1",
        "metrics.fetcher.update-interval": "0",
        "metrics.reporters": "prom",
        "metrics.reporter.prom.port": str(free_port()),
    }


@pytest.fixture(scope="module")
def rest(options: dict[str, Any]) -> Iterator[Rest]:
    try:
        yield Rest(int(options["rest.port"]))
    finally:
        stop_embedded()


class Counting(MapFunction):
    """Has a metric of each kind."""

    def open(self, runtime_context: Any) -> None:
        group = runtime_context.get_metrics_group()
        self.seen = group.counter("seen")
        self.rate = group.add_group("cache").add_group("region", "eu").meter("hits")
        self.ages = group.histogram("ages")
        self.sizes = group.distribution("sizes")
        group.gauge("answer", lambda: 42)
        group.gauge("mood", lambda: "good")
        group.gauge('hits: "all", new', lambda: 7)
        group.gauge("broken", lambda: 1 / 0)

    def map(self, value: Any) -> Any:
        self.seen.inc()
        self.rate.mark_event()
        self.ages.update(value[0])
        self.sizes.update(2)
        return value


class WithTimer(KeyedProcessFunction):
    """Fires a timer for each record."""

    def process_element(self, value: Any, ctx: Any) -> Any:
        ctx.timer_service().register_event_time_timer(value[0])
        yield value

    def on_timer(self, timestamp: int, ctx: Any) -> Any:
        yield from ()


@pytest.fixture
def job(rest: Rest, options: dict[str, Any]) -> Iterator[str]:
    """The id of a job that has read 20 records and waits: counted, with timers and windows, some
    records too late."""
    env = embedded_environment(options)
    times = [1000 * number for number in range(20)] + [1] * LATE + [19_500] * 30
    by_time = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
        lambda value, _: value[0]
    )
    source = env.from_source(
        PacedSource([((time, "record"), time) for time in times], 20, 1), by_time, "numbers"
    )
    windows = (
        source.map(Counting())
        .name("Count: all")
        .key_by(lambda value: 0)
        .process(WithTimer())
        .name("timers")
    )
    windows.key_by(lambda value: 0).window(TumblingEventTimeWindows.of(Time.seconds(1))).reduce(
        lambda one, other: one
    ).sink_to(DiscardingSink())
    client = env.execute_async("counted")
    try:
        job_id = str(client.get_job_id())
        path = f"/jobs/{job_id}/vertices"
        eventually(lambda: rest.get(f"/jobs/{job_id}")["status-counts"]["RUNNING"] == 3)
        last = f"{path}/{vertices(rest, job_id)[-1]}/subtasks/0/metrics"
        eventually(
            lambda: (
                (value(rest, last, "numRecordsIn"), value(rest, last, "currentInputWatermark"))
                == (20, REACHED)
            )
        )
        yield job_id
    finally:
        client.cancel().result(30)


def vertices(rest: Rest, job: str) -> list[str]:
    return [vertex["id"] for vertex in rest.get(f"/jobs/{job}")["vertices"]]


def all_of(rest: Rest, path: str) -> dict[str, str]:
    names = ",".join(each["id"] for each in rest.get(path))
    return {each["id"]: each["value"] for each in rest.get(f"{path}?get={names}")}


def value(rest: Rest, path: str, name: str) -> float:
    found = rest.get(f"{path}?get={name}")
    return float(found[0]["value"]) if found else -1.0


def test_every_metric_of_a_task_is_told(rest: Rest, job: str) -> None:
    for number, vertex in enumerate(vertices(rest, job)):
        path = f"/jobs/{job}/vertices/{vertex}/subtasks/0/metrics"
        names = {each["id"] for each in rest.get(path)}
        wanted = {each.name for each in of_scope(Scope.TASK) if each.kind is not Kind.HISTOGRAM}
        barriers = {"currentInputWatermark", "checkpointAlignmentTime", "checkpointStartDelayNanos"}
        assert wanted - names == (barriers if number == 0 else barriers - {"currentInputWatermark"})
        assert "mailboxLatencyMs_count" in names
    assert (
        rest.ask(f"/jobs/{job}/vertices/{vertices(rest, job)[0]}/subtasks/7/metrics").status == 404
    )


def test_what_one_task_has_written_another_one_has_read(rest: Rest, job: str) -> None:
    first, second = (
        all_of(rest, f"/jobs/{job}/vertices/{each}/subtasks/0/metrics")
        for each in vertices(rest, job)[:2]
    )
    assert first["numRecordsOut"] == second["numRecordsIn"] == "20"
    assert (
        int(first["numBytesOut"])
        == int(second["numBytesIn"])
        == int(second["numBytesInLocal"])
        > 20 * 8
    )
    assert int(first["numBuffersOut"]) == int(second["numBuffersInLocal"]) > 0
    assert second["numBytesInRemote"] == second["numBuffersInRemote"] == "0"


def test_operators_tell_of_themselves(rest: Rest, job: str) -> None:
    source, timers, windows = vertices(rest, job)
    found = all_of(rest, f"/jobs/{job}/vertices/{windows}/metrics")
    [window] = {name.split(".")[1] for name in found if name.endswith(".numLateRecordsDropped")}
    assert found[f"0.{window}.numLateRecordsDropped"] == "0"
    assert int(found[f"0.{window}.currentInputWatermark"]) == REACHED
    assert float(found[f"0.{window}.watermarkLatency"]) > 1e12
    assert found[f"0.{window}.numKeyValueStateEntries"] == "1"  # the window that is open
    [sink] = {name.split(".")[1] for name in found if name.endswith(".numRecordsSend")}
    assert found[f"0.{sink}.numRecordsSend"] == found[f"0.{sink}.numRecordsIn"]
    assert (
        int(all_of(rest, f"/jobs/{job}/vertices/{timers}/subtasks/0/metrics")["numFiredTimers"])
        == 19
    )
    assert rest.get(f"/jobs/{job}/vertices/{windows}/watermarks") == [
        {"id": "0.currentInputWatermark", "value": str(REACHED)}
    ]
    assert rest.get(f"/jobs/{job}/vertices/{source}/watermarks") == []


def test_metrics_of_functions_are_told_under_the_name_of_their_operator(
    rest: Rest, job: str
) -> None:
    found = all_of(rest, f"/jobs/{job}/vertices/{vertices(rest, job)[0]}/metrics")
    own = {
        name.removeprefix("0.Count__all."): value
        for name, value in found.items()
        if name.startswith("0.Count__all.")
    }
    assert (own["seen"], own["answer"], own["mood"], own["ages_max"], own["sizes_mean"]) == (
        "20",
        "42",
        "good",
        "19000.0",
        "2.0",
    )
    assert float(own["cache.region.eu.hits"]) > 0
    assert "broken" not in own
    assert own["hits__all__new"] == "7"  # as Flink replaces them: it is got by its name


def test_metrics_are_aggregated_over_subtasks_jobs_and_task_managers(rest: Rest, job: str) -> None:
    path = f"/jobs/{job}/vertices/{vertices(rest, job)[0]}/subtasks/metrics"
    assert rest.get(f"{path}?get=numRecordsOut&agg=max,sum") == [
        {"id": "numRecordsOut", "max": 20, "sum": 20}
    ]
    assert rest.get(f"/jobs/metrics?get=numRestarts&agg=max&jobs={job}") == [
        {"id": "numRestarts", "max": 0}
    ]
    [segments] = rest.get(
        "/taskmanagers/metrics?get=Status.Shuffle.Netty.TotalMemorySegments&agg=min"
    )
    assert segments["min"] > 0
    [manager] = rest.get(f"/jobs/{job}/vertices/{vertices(rest, job)[0]}/taskmanagers")[
        "taskmanagers"
    ]
    of_manager = f"/taskmanagers/{manager['taskmanager-id']}/metrics"
    assert {each["id"] for each in rest.get(of_manager)} == {
        each.name for each in of_scope(Scope.TASK_MANAGER)
    }
    assert value(rest, of_manager, "numRunningTasks") >= 3
    assert {each["id"] for each in rest.get("/jobmanager/metrics")} == {
        each.name for each in of_scope(Scope.JOB_MANAGER)
    }
    assert value(rest, "/jobmanager/metrics", "numRunningJobs") == 1
    assert {each["id"] for each in rest.get(f"/jobs/{job}/metrics")} == {
        each.name for each in of_scope(Scope.JOB)
    }


def scraped(port: int) -> dict[str, list[Any]]:
    with urllib.request.urlopen(f"http://localhost:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    return {family.name: family.samples for family in text_string_to_metric_families(text)}


def test_prometheus_finds_the_names_and_labels_of_flink(
    rest: Rest, job: str, options: dict[str, Any]
) -> None:
    families = scraped(int(options["metrics.reporter.prom.port"]))
    assert scraped(rest.port).keys() == families.keys()
    of_tm = {"host", "tm_id"}
    of_task = of_tm | {
        "job_id",
        "job_name",
        "task_id",
        "task_name",
        "task_attempt_id",
        "task_attempt_num",
        "subtask_index",
    }
    labels = {
        Scope.JOB_MANAGER: {"host"},
        Scope.JOB: {"host", "job_id", "job_name"},
        Scope.TASK_MANAGER: of_tm,
        Scope.TASK: of_task,
        Scope.OPERATOR: of_task | {"operator_id", "operator_name"},
    }
    told = {
        name: {frozenset(sample.labels) for sample in samples} for name, samples in families.items()
    }
    for (scope, name), definition in BY_NAME.items():
        full = f"flink_{scope.value}_{name.replace('.', '_').replace('-', '_')}"
        if full in told and definition.kind is not Kind.HISTOGRAM:
            assert told[full] == {frozenset(labels[scope])}, full
        else:
            others = {
                "checkpointAlignmentTime",
                "checkpointStartDelayNanos",
                "pendingRecords",
                *ROCKSDB,
                *OF_ROWS_THAT_CHANGE,
                *OF_PATTERNS,
                *OF_TABLES,
            }
            assert definition.kind is Kind.HISTOGRAM or name in others, full
    [seen] = families["flink_taskmanager_job_task_operator_seen"]
    assert (
        seen.value,
        seen.labels["operator_name"],
        seen.labels["job_name"],
        seen.labels["subtask_index"],
    ) == (20, "Count: all", "counted", "0")
    [hits] = families["flink_taskmanager_job_task_operator_cache_region_hits"]
    assert hits.labels["region"] == "eu"
    ages = {
        sample.labels.get("quantile", sample.name): sample.value
        for sample in families["flink_taskmanager_job_task_operator_ages"]
    }
    assert ages["flink_taskmanager_job_task_operator_ages_count"] == 20
    assert ages["0.999"] == 19000


def test_a_port_of_prometheus_has_nothing_else(
    rest: Rest, job: str, options: dict[str, Any]
) -> None:
    only = Rest(int(options["metrics.reporter.prom.port"]))
    assert only.ask("/jobs").status == 404
    assert only.ask(f"/jobs/{job}", "PATCH").status == 404


def test_a_function_that_does_not_return_holds_no_metrics_back(
    rest: Rest, options: dict[str, Any]
) -> None:
    with held_job(options) as client:
        job = str(client.get_job_id())
        eventually(
            lambda: (
                sum(vertex["tasks"]["RUNNING"] for vertex in rest.get(f"/jobs/{job}")["vertices"])
                == 3
            )
        )
        path = f"/jobs/{job}/vertices/{vertices(rest, job)[0]}/subtasks/0/metrics"
        eventually(lambda: value(rest, path, "numRecordsOut") == 5)
        eventually(lambda: value(rest, path, "busyTimeMsPerSecond") > 0)
        assert not GO.is_set()


def test_savepoints_count_as_in_the_route_of_checkpoints(
    rest: Rest, options: dict[str, Any], tmp_path: Path
) -> None:
    with waiting_job({**options, "execution.checkpointing.interval": "1 h"}) as client:
        job = str(client.get_job_id())
        eventually(lambda: rest.get(f"/jobs/{job}")["status-counts"]["RUNNING"] == 1)
        assert value(rest, f"/jobs/{job}/metrics", "lastCheckpointFullSize") == -1
        location = client.trigger_savepoint(str(tmp_path)).result(60)
        eventually(lambda: rest.get(f"/jobs/{job}/checkpoints")["counts"]["completed"] == 1)
        eventually(lambda: value(rest, f"/jobs/{job}/metrics", "numberOfCompletedCheckpoints") == 1)
        found, told = all_of(rest, f"/jobs/{job}/metrics"), rest.get(f"/jobs/{job}/checkpoints")
        assert told["latest"]["savepoint"]["external_path"] == location
        assert (found["totalNumberOfCheckpoints"], found["lastCompletedCheckpointId"]) == (
            "1",
            str(told["latest"]["savepoint"]["id"]),
        )
        assert int(found["lastCheckpointFullSize"]) == told["latest"]["savepoint"]["state_size"] > 0
        assert (
            int(found["lastCheckpointDuration"])
            == told["latest"]["savepoint"]["end_to_end_duration"]
        )


def test_barriers_that_came_tell_their_times(rest: Rest, job: str) -> None:
    asked = rest.ask(f"/jobs/{job}/checkpoints", "POST", {})
    path = f"/jobs/{job}/vertices/{vertices(rest, job)[1]}/subtasks/0/metrics"
    assert asked.status == 202
    eventually(lambda: value(rest, path, "checkpointStartDelayNanos") >= 0)
    assert value(rest, path, "checkpointAlignmentTime") >= 0
    eventually(lambda: value(rest, f"/jobs/{job}/metrics", "numberOfCompletedCheckpoints") >= 1)
    dropped = f"/jobs/{job}/vertices/{vertices(rest, job)[2]}/subtasks/metrics?get=TumblingEventTimeWindows.numLateRecordsDropped&agg=sum"
    eventually(lambda: rest.get(dropped)[0]["sum"] == LATE)
