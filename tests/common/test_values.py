"""Configuration, times, strategies, futures: the small values of the API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import flinkpy.common as common
from flinkpy.actors.gateways import JobMetrics
from flinkpy.common import (
    CompletableFuture,
    ConfigOptions,
    Configuration,
    Duration,
    Encoder,
    ExecutionConfig,
    Instant,
    JobClient,
    JobStatus,
    OutputTag,
    RestartStrategies,
    Row,
    RowFieldExtractorSchema,
    SimpleStringSchema,
    Time,
    TimestampAssigner,
    WatermarkStrategy,
)
from flinkpy.core.elements import SnapshotType
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError, RpcTimeoutError
from flinkpy.core.lifecycles import JobState
from flinkpy.metrics.reported import ACCUMULATOR


def test_every_public_name_of_the_package_is_there() -> None:
    assert [name for name in common.__all__ if not hasattr(common, name)] == []


def test_a_configuration_keeps_what_it_was_given_and_reads_it_in_any_type() -> None:
    conf = (
        Configuration.from_dict({"a": "5"})
        .set_boolean("b", True)
        .set_float("c", 1.5)
        .set_integer("d", 3)
        .set_string("e", "x")
    )
    assert (
        conf.get_integer("a", 0),
        conf.get_boolean("b", False),
        conf.get_float("c", 0.0),
        conf.get_string("d", ""),
    ) == (5, True, 1.5, "3")
    assert conf.to_dict() == {"a": "5", "b": "true", "c": "1.5", "d": "3", "e": "x"}
    assert (conf.get_string("none", "default"), conf.contains_key("a")) == ("default", True)
    assert (conf.remove_config("a"), conf.remove_config("a")) == (True, False)
    other: dict[str, Any] = {}
    Configuration().add_all(conf, "p.").add_all_to_dict(other)
    assert other["p.b"] is True
    assert (Configuration(conf) == conf, conf.key_set()) == (True, {"b", "c", "d", "e"})
    with pytest.raises(ConfigurationError, match="option e"):
        conf.get_integer("e", 0)
    with pytest.raises(ConfigurationError, match="takes int"):
        conf.set_integer("f", "3")  # type: ignore[arg-type]


def test_a_program_may_declare_options_of_its_own() -> None:
    threshold = ConfigOptions.key("user.threshold").int_type().default_value(3)
    conf = Configuration()
    assert conf.get(threshold) == 3
    assert conf.set(threshold, 7).get(threshold) == 7


def test_execution_config_is_a_face_of_the_options() -> None:
    values: dict[str, Any] = {}
    config = (
        ExecutionConfig(values)
        .set_parallelism(3)
        .set_max_parallelism(64)
        .enable_object_reuse()
        .set_auto_watermark_interval(50)
    )
    config.set_global_job_parameters({"answer": 42}).set_restart_strategy(
        RestartStrategies.fixed_delay_restart(2, 500)
    )
    assert (
        config.get_parallelism(),
        config.get_max_parallelism(),
        config.is_object_reuse_enabled(),
    ) == (3, 64, True)
    assert config.get_auto_watermark_interval() == 50
    assert (config.get_global_job_parameters(), values["restart-strategy.fixed-delay.delay"]) == (
        {"answer": "42"},
        "500 ms",
    )
    assert config.set_parallelism(ExecutionConfig.PARALLELISM_DEFAULT).get_parallelism() == 1
    with pytest.raises(ConfigurationError, match="from 1 on"):
        config.set_parallelism(0)
    with pytest.raises(ConfigurationError, match="at most 32768"):
        config.set_max_parallelism(1 << 20)


def test_spans_and_moments() -> None:
    assert (
        Time.hours(1).to_milliseconds()
        == Duration.of_hours(1) // timedelta(milliseconds=1)
        == 3_600_000
    )
    assert (
        Instant.of_epoch_milli(-1).to_epoch_milli(),
        Duration.of_nanos(5_000).microseconds,
        repr(Time.seconds(2)),
    ) == (-1, 5, "2000 ms")


def test_strategies_are_values() -> None:
    assert (
        RestartStrategies.no_restart()
        == RestartStrategies.no_restart()
        != RestartStrategies.fixed_delay_restart(1, 1)
    )
    rate = RestartStrategies.failure_rate_restart(
        3, timedelta(minutes=1), timedelta(seconds=1)
    ).options()
    assert rate["restart-strategy.failure-rate.failure-rate-interval"] == "60000 ms"
    assert RestartStrategies.fall_back_restart().options() == {}
    with pytest.raises(ProgramError, match="whole number of failures from 0 on, this is -1"):
        RestartStrategies.fixed_delay_restart(-1, 1)
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_idleness(Duration.of_seconds(1))
    assert (strategy.max_out_of_orderness, strategy.idle_timeout) == (
        timedelta(),
        timedelta(seconds=1),
    )

    class First(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value[0])

    assert strategy.with_timestamp_assigner(First()).timestamp_assigner is not None
    with pytest.raises(ProgramError, match="takes a TimestampAssigner"):
        strategy.with_timestamp_assigner(7)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=r"write First\(\)"):
        strategy.with_timestamp_assigner(First)
    with pytest.raises(ProgramError, match="cannot be negative"):
        WatermarkStrategy.for_bounded_out_of_orderness(timedelta(seconds=-1))


def test_an_output_tag_is_its_id() -> None:
    assert OutputTag("late") == OutputTag("late", common.Types.INT())
    with pytest.raises(ProgramError, match="not empty"):
        OutputTag("")


def test_schemas_turn_values_into_bytes_and_back() -> None:
    assert SimpleStringSchema("latin-1").serialize("é") == b"\xe9"
    assert RowFieldExtractorSchema(0).serialize(Row("é")) == "é".encode()
    assert Encoder.simple_string_encoder().encode("x") == b"x\n"
    with pytest.raises(ProgramError, match="no character set"):
        SimpleStringSchema("klingon")


def test_job_states_say_whether_they_are_the_end() -> None:
    assert [state for state in JobStatus if state.is_globally_terminal_state()] == [
        JobStatus.FAILED,
        JobStatus.CANCELED,
        JobStatus.FINISHED,
    ]
    assert not JobStatus.RECONCILING.is_terminal_state()
    assert {state.name for state in JobState} <= {state.name for state in JobStatus}


class Job:
    """A submitted job whose end the test decides."""

    job_id, name = "0" * 32, "test"

    def __init__(self) -> None:
        self.outcome: Any = RpcTimeoutError("not yet")
        self.cancelled = False
        self.asked: list[tuple[SnapshotType, str | None, str | None]] = []

    def status(self) -> JobState:
        return JobState.RUNNING

    def details(self) -> Any:
        return None

    def metrics(self) -> Any:
        return JobMetrics({"seen": 2, ACCUMULATOR: [("Map.0.late", 1)]}, {"Map.0.numRecordsIn": 5})

    def picture(self) -> Any:
        return "a picture"

    def cancel(self) -> None:
        self.cancelled = True

    def request_savepoint(
        self, snapshot_type: SnapshotType, directory: Any = None, format_type: str | None = None
    ) -> Job:
        self.asked.append((snapshot_type, directory, format_type))
        return self

    def result(self, timeout: float | None = None) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


class Result:
    job_id, runtime_ms, accumulators = "0" * 32, 12, {"seen": 3}


def test_a_job_client_tells_state_result_and_accumulators() -> None:
    job = Job()
    client = JobClient(job)
    assert client.get_job_status().result() is JobStatus.RUNNING
    assert client.get_accumulators().result() == {"seen": 2}
    assert client.get_metrics().result() == {"Map.0.late": 1, "Map.0.numRecordsIn": 5}
    future = client.get_job_execution_result()
    assert not future.done()
    with pytest.raises(RpcTimeoutError):
        future.result(0.0)
    job.outcome = Result()
    assert future.done()
    result = future.result()
    assert (
        result.get_net_runtime(),
        result.get_accumulator_result("seen"),
        str(result.get_job_id()),
    ) == (12, 3, "0" * 32)
    assert client.cancel().done()
    assert job.cancelled


def test_a_failed_job_raises_from_its_future() -> None:
    job = Job()
    job.outcome = JobExecutionError("test", ValueError("no"))
    future = JobClient(job).get_job_execution_result()
    assert isinstance(future.exception(), JobExecutionError)
    with pytest.raises(JobExecutionError):
        future.result()
    assert not future.cancel()


def test_a_savepoint_is_asked_for_at_once_and_its_folder_is_the_futures_result() -> None:
    job = Job()
    client = JobClient(job)
    futures = [
        client.trigger_savepoint("there"),
        client.stop_with_savepoint(False),
        client.stop_with_savepoint(True, "x", "NATIVE"),
    ]
    assert job.asked == [
        (SnapshotType.SAVEPOINT, "there", None),
        (SnapshotType.SUSPEND, None, None),
        (SnapshotType.TERMINATE, "x", "NATIVE"),
    ]
    assert not any(future.done() for future in futures)
    job.outcome = "there/savepoint-1"
    assert [future.result() for future in futures] == ["there/savepoint-1"] * 3


def test_a_cancelled_future_is_cancelled_once() -> None:
    future: CompletableFuture[int] = CompletableFuture(lambda timeout: 1, lambda: None)
    assert (future.cancel(), future.cancelled(), future.result(), future.cancel()) == (
        True,
        True,
        1,
        False,
    )


@pytest.mark.finding("newcomers 8")
def test_a_job_client_tells_id_and_state_and_what_to_write_instead() -> None:
    client = JobClient(Job())
    assert (client.id, client.status) == (str(client.get_job_id()), JobStatus.RUNNING)
    with pytest.raises(
        AttributeError,
        match=r"a JobClient has no wait: write get_job_execution_result\(\)\.result\(\)",
    ):
        client.wait()  # type: ignore[attr-defined]
    assert not hasattr(client, "nonsense")
