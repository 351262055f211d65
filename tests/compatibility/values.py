"""Value types: each name of ``pyflink.common`` called as a program would."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

from flinkpy.common import (
    ConfigOptions,
    Configuration,
    Duration,
    Encoder,
    Instant,
    JobStatus,
    RestartStrategies,
    Row,
    RowFieldExtractorSchema,
    RowKind,
    SimpleStringSchema,
    Time,
    TypeInformation,
    Types,
    TypeSerializer,
    WatermarkStrategy,
)
from flinkpy.common.watermark_strategy import TimestampAssigner


def configuration() -> None:
    key = ConfigOptions.key("user.k")
    assert key.string_type().default_value("x").default == "x"
    for typed in (
        key.boolean_type(),
        key.double_type(),
        key.float_type(),
        key.int_type(),
        key.long_type(),
    ):
        typed.no_default_value()
    values = (
        Configuration()
        .set_string("s", "x")
        .set_integer("i", 1)
        .set_boolean("b", True)
        .set_float("f", 1.5)
    )
    values.set_bytearray("a", bytearray(b"z"))
    assert (
        values.get_string("s", ""),
        values.get_integer("i", 0),
        values.get_boolean("b", False),
        values.get_float("f", 0.0),
    ) == ("x", 1, True, 1.5)
    assert values.get_bytearray("a", bytearray()) == b"z"
    assert values.key_set() == {"s", "i", "b", "f", "a"}
    assert values.contains_key("s")
    assert values.remove_config("s")
    other: dict[str, Any] = {}
    Configuration(values).add_all(Configuration.from_dict({"n": "m"}), "p.").add_all_to_dict(other)
    assert other["p.n"] == "m"
    assert values.to_dict()["i"] == "1"
    assert Configuration.parse_list_value("[a, b]") == ["a", "b"]


def spans_and_moments() -> None:
    spans = [
        Duration.of_days(1),
        Duration.of_hours(1),
        Duration.of_minutes(1),
        Duration.of_seconds(1),
        Duration.of_millis(1),
        Duration.of_nanos(1000),
    ]
    assert [span / timedelta(microseconds=1) for span in spans] == [864e8, 36e8, 6e7, 1e6, 1e3, 1]
    times = [Time.days(1), Time.hours(1), Time.minutes(1), Time.seconds(1), Time.milliseconds(1)]
    assert [time.to_milliseconds() for time in times] == [86_400_000, 3_600_000, 60_000, 1000, 1]
    assert Instant.of_epoch_milli(1500).to_epoch_milli() == 1500


def types() -> None:
    scalars = (
        Types.BIG_DEC,
        Types.BIG_INT,
        Types.BOOLEAN,
        Types.BYTE,
        Types.CHAR,
        Types.DOUBLE,
        Types.FLOAT,
        Types.INSTANT,
        Types.INT,
        Types.LONG,
        Types.PICKLED_BYTE_ARRAY,
        Types.SHORT,
        Types.SQL_DATE,
        Types.SQL_TIME,
        Types.SQL_TIMESTAMP,
        Types.STRING,
    )
    assert all(isinstance(scalar(), TypeInformation) for scalar in scalars)
    inner = Types.INT()
    for compound in (
        Types.BASIC_ARRAY(inner),
        Types.LIST(inner),
        Types.OBJECT_ARRAY(inner),
        Types.PRIMITIVE_ARRAY(inner),
        Types.MAP(inner, inner),
        Types.ROW([inner]),
        Types.TUPLE([inner]),
    ):
        compound.need_conversion()
    named = Types.ROW_NAMED(["a"], [inner])
    assert named.from_internal_type(named.to_internal_type(Row(a=1))) == Row(a=1)
    assert Types.LONG().from_internal_type(Types.LONG().to_internal_type(7)) == 7


def rows() -> None:
    row = Row.of_kind(RowKind.DELETE, 1, 2)
    row.set_field_names(["a", "b"])
    assert (row.get_fields_by_names(["b"]), row.as_dict(), row.get_row_kind()) == (
        [2],
        {"a": 1, "b": 2},
        RowKind.DELETE,
    )
    row.set_row_kind(RowKind.INSERT)
    assert list(row) == [1, 2]


def restart_strategies() -> None:
    rate: Any = RestartStrategies.failure_rate_restart(3, 1000, 10)
    assert (
        rate.get_max_failure_rate(),
        rate.get_failure_interval(),
        rate.get_delay_between_attempts_interval(),
    ) == (3, timedelta(seconds=1), timedelta(milliseconds=10))
    fixed: Any = RestartStrategies.fixed_delay_restart(2, 10)
    assert (fixed.get_restart_attempts(), fixed.get_delay_between_attempts_interval()) == (
        2,
        timedelta(milliseconds=10),
    )
    assert all(
        strategy.get_description()
        for strategy in (
            rate,
            fixed,
            RestartStrategies.no_restart(),
            RestartStrategies.fall_back_restart(),
        )
    )


def schemas_and_encoders() -> None:
    assert SimpleStringSchema("UTF-8").serialize("ä") == "ä".encode()
    assert RowFieldExtractorSchema(1).serialize(Row("k", b"v")) == b"v"
    assert Encoder.simple_string_encoder().encode("x") == b"x\n"

    class Text(TypeSerializer[str]):
        def serialize(self, value: str, stream: Any) -> None:
            stream.write(value.encode())

        def deserialize(self, stream: Any) -> str:
            return bytes(stream.read()).decode()

    stream = io.BytesIO()
    Text().serialize("x", stream)
    stream.seek(0)
    assert Text().deserialize(stream) == "x"


def job_states() -> None:
    assert JobStatus.FINISHED.is_globally_terminal_state()
    assert JobStatus.FAILED.is_terminal_state()
    assert not JobStatus.RUNNING.is_terminal_state()


def watermark_strategies() -> None:
    class Assigner(TimestampAssigner):
        def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
            return int(value)

    assigner = Assigner()
    WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner).with_idleness(
        Duration.of_seconds(1)
    )
    WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(1))
    WatermarkStrategy.no_watermarks()
    WatermarkStrategy.for_monotonous_timestamps().with_watermark_alignment(
        "group", Duration.of_seconds(1), Duration.of_seconds(1)
    )
    assert assigner.extract_timestamp("7", -1) == 7


SCENARIOS = [
    configuration,
    spans_and_moments,
    types,
    rows,
    restart_strategies,
    schemas_and_encoders,
    job_states,
    watermark_strategies,
]
