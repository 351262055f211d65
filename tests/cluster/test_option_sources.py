from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flinkpy.cluster.option_sources import (
    FILE_NAME,
    environment_name,
    load_settings,
    parse_definitions,
)
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import (
    OBJECT_REUSE,
    PARALLELISM,
    PIPELINE_NAME,
    TASK_OUTPUT,
    OutputForm,
)
from flinkpy.core.options.schema import SCHEMA, Option, read


def conf(folder: Path, text: str) -> Path:
    path = folder / FILE_NAME
    path.write_text(text)
    return path


def test_nothing_set_gives_nothing() -> None:
    assert load_settings(environ={}) == {}


def test_later_sources_win_over_earlier_ones(tmp_path: Path) -> None:
    path = conf(
        tmp_path, "parallelism.default: 2\npipeline.name: from file\npipeline.object-reuse: true\n"
    )
    environ = {
        "FLINKPY_PARALLELISM_DEFAULT": "3",
        "FLINKPY_PIPELINE_NAME": "from environment",
        "HOME": "/x",
    }
    settings = load_settings(conf=path, environ=environ, overrides={"parallelism.default": "4"})
    assert settings == {
        "parallelism.default": "4",
        "pipeline.name": "from environment",
        "pipeline.object-reuse": "true",
    }


def test_a_file_may_nest_its_keys(tmp_path: Path) -> None:
    path = conf(tmp_path, "taskmanager:\n  numberOfTaskSlots: 2\n  memory.network.size: 32 mb\n")
    assert load_settings(conf=path, environ={}) == {
        "taskmanager.numberOfTaskSlots": "2",
        "taskmanager.memory.network.size": "32 mb",
    }


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("restart-strategy:\n  type: fixed-delay\n", "restart-strategy.type", "fixed-delay"),
        ("state: {backend: {type: rocksdb}}\n", "state.backend.type", "rocksdb"),
        (
            "pipeline:\n  operator-chaining:\n    enabled: false\n",
            "pipeline.operator-chaining.enabled",
            "false",
        ),
    ],
)
def test_keys_may_be_nested_below_a_key_that_is_an_option_by_itself(
    tmp_path: Path, text: str, key: str, value: str
) -> None:
    assert load_settings(conf=conf(tmp_path, text), environ={}) == {key: value}


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("client.task-output: off\n", TASK_OUTPUT, OutputForm.OFF),
        ("pipeline.name: 2024-01-01\n", PIPELINE_NAME, "2024-01-01"),
        ("pipeline.name: no\n", PIPELINE_NAME, "no"),
        ("pipeline.object-reuse: on\n", OBJECT_REUSE, True),
        ("parallelism.default: ~\n", PARALLELISM, 1),
    ],
)
def test_an_options_value_in_a_file_is_the_text_written_there(
    tmp_path: Path, text: str, option: Option[Any], value: Any
) -> None:
    assert read(load_settings(conf=conf(tmp_path, text), environ={}), option) == value


def test_what_reads_as_a_number_in_yaml_alone_is_no_duration(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="'1:30' is not a duration"):  # to YAML it is 90
        load_settings(conf=conf(tmp_path, "heartbeat.interval: 1:30\n"), environ={})


def test_several_values_may_be_a_list(tmp_path: Path) -> None:
    path = conf(tmp_path, "io.tmp.dirs: [/fast, /large]\nuser.limits: [1, 2.5]\n")
    assert load_settings(conf=path, environ={}) == {
        "io.tmp.dirs": "/fast,/large",
        "user.limits": [1, 2.5],
    }


def test_the_file_is_found_in_the_folder_the_environment_names(tmp_path: Path) -> None:
    conf(tmp_path, "parallelism.default: 7\n")
    assert load_settings(environ={"FLINKPY_CONF_DIR": str(tmp_path)}) == {
        "parallelism.default": "7"
    }


def test_a_folder_may_be_given_instead_of_the_file(tmp_path: Path) -> None:
    conf(tmp_path, "parallelism.default: 7\n")
    assert load_settings(conf=tmp_path, environ={}) == {"parallelism.default": "7"}


def test_an_alias_in_a_later_source_replaces_the_key(tmp_path: Path) -> None:
    path = conf(tmp_path, "pipeline.operator-chaining.enabled: true\n")
    assert load_settings(
        conf=path, environ={}, overrides={"pipeline.operator-chaining": "false"}
    ) == {"pipeline.operator-chaining.enabled": "false"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("paralelism.default: 2\n", "did you mean 'parallelism.default'"),
        ("parallelism.default: many\n", "option parallelism.default"),
        ("- a\n- b\n", "key: value"),
        ("a: [\n", "flinkpy-conf.yaml"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(tmp_path: Path, text: str, message: str) -> None:
    path = conf(tmp_path, text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_settings(conf=path, environ={})
    assert str(path) in str(raised.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no configuration file"):
        load_settings(conf=tmp_path / "absent.yaml", environ={})
    with pytest.raises(ConfigurationError, match="FLINKPY_CONF_DIR"):
        load_settings(environ={"FLINKPY_CONF_DIR": str(tmp_path)})


def test_an_unknown_variable_names_the_nearest() -> None:
    with pytest.raises(ConfigurationError, match="did you mean FLINKPY_PARALLELISM_DEFAULT"):
        load_settings(environ={"FLINKPY_PARALELISM_DEFAULT": "2"})


def test_an_unknown_definition_names_the_nearest() -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"-D: unknown option 'paralelism.default'; did you mean 'parallelism.default'",
    ):
        load_settings(environ={}, overrides=parse_definitions(["paralelism.default=2"]))


@pytest.mark.parametrize("definition", ["parallelism.default", "=3", ""])
def test_a_definition_without_key_or_value_is_refused(definition: str) -> None:
    with pytest.raises(ConfigurationError, match="key=value"):
        parse_definitions([definition])


def test_keys_under_user_belong_to_the_program() -> None:
    assert load_settings(environ={}, overrides={"user.city": "Oslo"}) == {"user.city": "Oslo"}


def test_no_two_options_share_a_variable() -> None:
    names = [environment_name(option.key) for option in SCHEMA]
    assert len(names) == len(set(names))
