from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from flinkpy.common import Configuration
from flinkpy.core import options as all_options
from flinkpy.core.errors import ConfigurationError, EngineError
from flinkpy.core.options import engine as options
from flinkpy.core.options.compatibility import registered_files
from flinkpy.core.options.engine import NetworkConfig, RpcConfig, RuntimeMode, spill_folders
from flinkpy.core.options.schema import SCHEMA, option, parse_duration, parse_memory, read, validate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10 s", 10),
        ("100ms", 0.1),
        ("2 h", 7200),
        ("1500", 1.5),
        ("1.5 min", 90),
        ("3 milliseconds", 0.003),
        ("250 µs", 0.00025),
        ("250 micros", 0.00025),
    ],
)
def test_durations_are_spelled_as_in_flink(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "size"),
    [("32 kb", 32768), ("1g", 1 << 30), ("17", 17), ("2 kibibytes", 2048), ("3 bytes", 3)],
)
def test_memory_is_spelled_as_in_flink(text: str, size: int) -> None:
    assert parse_memory(text) == size


def test_an_unknown_option_is_refused_naming_the_nearest() -> None:
    with pytest.raises(
        ConfigurationError, match=r"'paralelism\.default'; did you mean 'parallelism\.default'"
    ):
        validate({"paralelism.default": 2})


def test_a_wrong_value_names_the_option_and_what_to_write() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"option heartbeat\.interval: 'soon' is not a duration; write for example",
    ):
        validate({"heartbeat.interval": "soon"})


def test_a_parallelism_below_one_is_refused_by_the_option_s_name() -> None:
    for wrong in (0, "-3"):
        with pytest.raises(
            ConfigurationError,
            match=r"option parallelism\.default: -?\d is too small; it must be at least 1",
        ):
            validate({"parallelism.default": wrong})


def test_a_key_that_is_no_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="option 1: the keys of options are text"):
        Configuration({1: 2})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        ("name:m", "write name:NAME,path:PATH"),
        ("path:/m", "write name:NAME,path:PATH"),
        ("name:m,path:", "write name:NAME,path:PATH"),
        ("nam:m,path:/m", "write name:NAME,path:PATH"),
        ("name:m,path:/m,colour:red", "write name:NAME,path:PATH"),
        ("name:m,path:/m,executable:maybe", "executable: 'maybe' is neither true nor false"),
    ],
)
def test_an_entry_of_cached_files_that_says_no_file_is_refused_and_not_left_out(
    entry: str, told: str
) -> None:
    with pytest.raises(
        ConfigurationError, match=f"option pipeline.cached-files: in '{entry}': {told}"
    ):
        list(registered_files({"pipeline.cached-files": f"name:n,path:/n;{entry};"}))


def test_keys_of_the_program_pass() -> None:
    validate({"user.threshold": 3})


def test_an_alias_is_read_as_its_option() -> None:
    assert read({"execution.buffer-timeout": "5 ms"}, options.BUFFER_TIMEOUT) == timedelta(
        milliseconds=5
    )


def test_enumerations_are_read_in_any_case() -> None:
    assert read({"execution.runtime-mode": "batch"}, options.RUNTIME_MODE) is RuntimeMode.BATCH
    with pytest.raises(ConfigurationError, match="STREAMING, BATCH, AUTOMATIC"):
        read({"execution.runtime-mode": "fast"}, options.RUNTIME_MODE)


def test_every_default_is_of_its_options_type_and_documented() -> None:
    for each in SCHEMA:
        assert each.default is None or isinstance(each.default, each.kind)
        assert each.doc.endswith(".")


def test_a_layer_reads_its_options_once_into_a_frozen_record() -> None:
    config = NetworkConfig.of(
        {"taskmanager.memory.network.size": "1 mb", "taskmanager.memory.segment-size": "4 kb"}
    )
    assert (config.total_segments, config.segment_size) == (256, 4096)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("parallelism.default", "two", r"'two' is not a whole number"),
        ("taskmanager.ray.num-cpus-per-slot", "half", r"'half' is not a number"),
        ("taskmanager.ray.num-cpus-per-slot", "nan", r"'nan' is not a number"),
        ("taskmanager.numberOfTaskSlots", -2, r"-2 is too small; it must be at least 1"),
        ("taskmanager.memory.segment-size", "0", r"0 is too small; it must be at least 1"),
        (
            "execution.checkpointing.interval",
            "5 ms",
            r"5 ms is too small; it must be at least 10 ms",
        ),
        (
            "execution.checkpointing.timeout",
            timedelta(),
            r"0 s is too small; it must be at least 10 ms",
        ),
        (
            "execution.checkpointing.min-pause",
            timedelta(seconds=-1),
            r"-1 s is too small; it must be at least 0 s",
        ),
        (
            "execution.checkpointing.aligned-checkpoint-timeout",
            timedelta(seconds=-1),
            r"-1 s is too small; it must be at least 0 s",
        ),
        ("restart-strategy.fixed-delay.attempts", -1, r"-1 is too small; it must be at least 0"),
        ("taskmanager.data.port", 99_999, r"99999 is too large; it must be at most 65535"),
        ("heartbeat.timeout", "99999999999 d", r"'99999999999 d' is longer than a duration can be"),
    ],
)
def test_a_number_that_cannot_be_is_refused_with_its_option(
    key: str, value: object, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"option {key}: {message}"):
        validate({key: value})


def test_network_memory_that_holds_no_segment_is_refused() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"taskmanager\.memory\.network\.size: 1024 bytes do not hold one segment of 32768",
    ):
        NetworkConfig.of({"taskmanager.memory.network.size": "1 kb"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"heartbeat.timeout": "5 s"}, "heartbeat.timeout: it is shorter than heartbeat.interval"),
        (
            {"heartbeat.interval": "2 min"},
            "heartbeat.timeout: it is shorter than heartbeat.interval",
        ),
        ({"heartbeat.interval": "0"}, "heartbeat.interval: .* it must be at least 1 ms"),
        ({"rpc.ask.timeout": "0 s"}, "rpc.ask.timeout: .* it must be at least 1 ms"),
    ],
)
def test_times_with_which_no_worker_could_live_are_refused(
    values: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"option {message}"):
        RpcConfig.of(values)


def test_a_heartbeat_may_be_as_rare_as_its_timeout_allows() -> None:
    assert RpcConfig.of(
        {"heartbeat.interval": "5 s", "heartbeat.timeout": "5 s"}
    ).heartbeat_timeout == timedelta(seconds=5)


def test_whoever_imports_the_options_has_those_of_every_file() -> None:
    files = {file.stem for file in Path(all_options.__file__).parent.glob("*.py")} - {
        "__init__",
        "schema",
        "ports",
        "process_memory",
    }
    assert set(all_options.__all__) == files


def test_an_option_is_declared_once() -> None:
    with pytest.raises(EngineError, match=r"io\.tmp\.dirs is declared twice"):
        option("io.tmp.dirs", str, None, "Again.")


def test_temporary_folders_are_separated_by_commas_or_as_in_the_path() -> None:
    assert spill_folders({"io.tmp.dirs": f"/a, /b{os.pathsep}/c"}) == ("/a", "/b", "/c")
