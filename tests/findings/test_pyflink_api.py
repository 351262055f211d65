"""Names and arguments as PyFlink's programs write them."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from flinkpy.common import Configuration, ExecutionConfig, Row, Types
from flinkpy.common.pyflink_imports import install, uninstall
from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from flinkpy.core.options.state import folders
from flinkpy.datastream import RuntimeExecutionMode, StreamExecutionEnvironment
from flinkpy.datastream.checkpoint_config import CheckpointConfig
from flinkpy.datastream.checkpoint_storage import (
    FileSystemCheckpointStorage,
    JobManagerCheckpointStorage,
)
from flinkpy.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from flinkpy.datastream.slot_sharing_group import MemorySize, SlotSharingGroup
from flinkpy.datastream.state_backend import EmbeddedRocksDBStateBackend
from flinkpy.datastream.window import EventTimeSessionWindows, ProcessingTimeSessionWindows


@pytest.mark.finding("pyflink keywords")
def test_methods_take_pyflinks_keywords() -> None:
    assert Configuration.from_dict(map={"a": "1"}).to_dict() == {"a": "1"}
    row = Row(1, 2)
    row.set_field_names(field_names=["a", "b"])
    assert row["a"] == 1
    assert ExecutionConfig().set_global_job_parameters(
        global_job_parameters_dict={"a": "b"}
    ).get_global_job_parameters() == {"a": "b"}
    config = CheckpointConfig().set_aligned_checkpoint_timeout(
        alignment_timeout=timedelta(seconds=3)
    )
    assert config.get_aligned_checkpoint_timeout() == timedelta(seconds=3)
    kept = config.set_externalized_checkpoint_retention(
        retention_mode=ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    assert (
        kept.get_externalized_checkpoint_retention()
        is ExternalizedCheckpointRetention.RETAIN_ON_CANCELLATION
    )
    for sessions in (EventTimeSessionWindows, ProcessingTimeSessionWindows):
        assert sessions.with_dynamic_gap(extractor=lambda record: 10) is not None


@pytest.mark.finding("pyflink texts")
def test_configurations_compare_and_print_as_pyflinks() -> None:
    assert str(Configuration({"a": "1"}).set_boolean("b", True)) == "{a=1, b=true}"
    assert ExecutionConfig().set_parallelism(2) == ExecutionConfig().set_parallelism(2)
    assert ExecutionConfig().set_parallelism(2) != ExecutionConfig()
    assert ExecutionConfig().disable_closure_cleaner().is_closure_cleaner_enabled() is False
    assert ExecutionConfig().is_closure_cleaner_enabled() is True


@pytest.mark.finding("pyflink texts")
@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (Types.STRING(), "String"),
        (Types.INT(), "Integer"),
        (Types.BIG_INT(), "BigInteger"),
        (Types.SQL_DATE(), "DateTypeInfo"),
        (Types.PICKLED_BYTE_ARRAY(), "PickledByteArrayTypeInfo"),
        (Types.LIST(Types.LONG()), "ListTypeInfo<Long>"),
        (Types.MAP(Types.STRING(), Types.DOUBLE()), "MapTypeInfo<String, Double>"),
        (Types.TUPLE([Types.CHAR(), Types.BYTE()]), "TupleTypeInfo(Char, Byte)"),
        (
            Types.ROW_NAMED(["a", "b"], [Types.STRING(), Types.INT()]),
            "RowTypeInfo(a: String, b: Integer)",
        ),
    ],
)
def test_types_print_as_pyflinks(declared: object, text: str) -> None:
    assert str(declared) == text


@pytest.mark.finding("pyflink jars")
@pytest.mark.parametrize("method", ["add_jars", "add_classpaths"])
def test_jars_are_refused_with_what_to_do_instead(method: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    with pytest.raises(
        ProgramError, match=r"no JVM that could load file:///kafka\.jar; take the line out"
    ):
        getattr(env, method)("file:///kafka.jar")


def test_a_program_written_for_pyflink_is_warned_of_its_jars(
    caplog: pytest.LogCaptureFixture,
) -> None:
    install()
    try:
        StreamExecutionEnvironment.get_execution_environment().add_jars("file:///kafka.jar")
    finally:
        uninstall()
    assert (
        "no JVM that could load file:///kafka.jar; flinkpy's own connectors and formats need no jar"
    ) in caplog.text


@pytest.mark.finding("pyflink slot_sharing")
def test_a_slot_sharing_group_refuses_resources_that_cannot_be() -> None:
    builder = SlotSharingGroup.builder("one")
    with pytest.raises(ProgramError, match="above 0"):
        builder.set_cpu_cores(0)
    with pytest.raises(ProgramError, match="above 0"):
        builder.set_cpu_cores(float("nan"))
    with pytest.raises(ProgramError, match="more than 0"):
        builder.set_task_heap_memory_mb(0)
    with pytest.raises(ProgramError, match="more than 0"):
        builder.set_task_heap_memory(MemorySize(0))
    with pytest.raises(ProgramError, match="a name and a number above 0"):
        builder.set_external_resource("gpu", 0)
    with pytest.raises(ProgramError, match="a name and a number above 0"):
        builder.set_external_resource("", 1)


@pytest.mark.finding("pyflink min_by")
@pytest.mark.parametrize("mode", [RuntimeExecutionMode.STREAMING, RuntimeExecutionMode.BATCH])
@pytest.mark.parametrize("key", [[1], {"a": 1}])
def test_a_list_or_dict_as_key_is_refused_alike_in_both_modes(
    mode: RuntimeExecutionMode, key: object
) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(mode)
    smallest = env.from_collection([(key, 2), (key, 1)]).key_by(lambda record: record[0]).min_by(1)
    with pytest.raises(JobExecutionError, match="instead of a list or a dict use a tuple"):
        smallest.take(3)


def test_a_verb_of_keyed_streams_asks_for_a_key() -> None:
    stream = StreamExecutionEnvironment.get_execution_environment().from_collection([1])
    with pytest.raises(
        AttributeError,
        match=r"sum\(\) works on the records of a key: call key_by\(\.\.\.\) before$",
    ):
        getattr(stream, "sum")  # noqa: B009  # for mypy it is not there
    with pytest.raises(AttributeError, match=r"window_all\(\.\.\.\) takes the whole stream"):
        getattr(stream, "window")  # noqa: B009
    with pytest.raises(AttributeError, match="no attribute 'mapp'"):
        getattr(stream, "mapp")  # noqa: B009
    assert not hasattr(stream, "window")


@pytest.mark.finding("first-use 18")
@pytest.mark.parametrize("moment", [1_700_000_000_000_000_000, -70_000_000_000_000])
def test_event_times_that_are_not_milliseconds_are_told_what_to_change(moment: int) -> None:
    import pyarrow as pa

    env = StreamExecutionEnvironment.get_execution_environment()
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner("at")
    stream = env.from_arrow(pa.table({"at": [0, moment]})).assign_timestamps_and_watermarks(
        strategy
    )
    with pytest.raises(
        JobExecutionError,
        match=f"gives {moment} as event time, and event time is in milliseconds: divide",
    ):
        stream.take(3)


@pytest.mark.finding("pyflink environments")
def test_embedded_a_requirement_that_is_not_installed_is_named(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "# for the model\npytest>=1\nno-such-package==3  # pinned\nother; python_version < '3'\n"
    )
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_requirements(str(tmp_path / "requirements.txt"), "wheels")
    env.from_collection([1]).print()
    with pytest.raises(
        ConfigurationError,
        match=r"lacks no-such-package==3 of .*: pip install --no-index --find-links wheels -r ",
    ):
        env.execute()


@pytest.mark.finding("faults 13")
def test_embedded_a_requirement_that_is_installed_in_another_version_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "requirements.txt").write_text("pytest<1\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_requirements(str(tmp_path / "requirements.txt"))
    assert env.from_collection([1]).take(1) == [1]
    assert (
        f"which has version {pytest.__version__} where {tmp_path / 'requirements.txt'} says "
        "pytest<1"
    ) in caplog.text


def test_embedded_requirements_that_are_installed_are_no_hindrance(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("pytest>=1\n--index-url somewhere\n")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_requirements(str(tmp_path / "requirements.txt"))
    assert env.from_collection([1]).take(1) == [1]


def archive(file: Path, **texts: str) -> str:
    with zipfile.ZipFile(file, "w") as written:
        for name, text in texts.items():
            written.writestr(f"{name}.txt", text)
    return str(file)


def read_text(name: str) -> str:
    return Path(name).read_text()


@pytest.mark.finding("bugs 8")
@pytest.mark.finding("pyflink environments")
def test_embedded_an_archive_is_unpacked_where_functions_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "job").mkdir()
    monkeypatch.chdir(tmp_path / "job")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(archive(tmp_path / "model.zip", weights="w"), "model")
    env.add_python_archive(archive(tmp_path / "one.zip", a="a"))
    env.configure(
        {
            "python.archives": env.get_configuration().get_string("python.archives", "")
            + f",{archive(tmp_path / 'two.zip', b='b')}#model/b"
        }
    )
    names = ["model/weights.txt", "one.zip/a.txt", "model/b/b.txt"]
    assert env.from_collection(names).map(read_text).take(3) == ["w", "a", "b"]


@pytest.mark.finding("bugs 8")
def test_embedded_what_has_the_name_of_an_archive_stays_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights.txt").write_text("mine")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.add_python_archive(archive(tmp_path / "model.zip", weights="w"), "model")
    assert env.from_collection(["model/weights.txt"]).map(read_text).take(1) == ["mine"]
    assert "which has model already" in caplog.text


@pytest.mark.wide
@pytest.mark.finding("bugs 8")
@pytest.mark.parametrize("way", ["-D", "file", "Configuration", "environment variable"])
def test_embedded_python_files_have_their_effect_wherever_they_are_named(
    tmp_path: Path, way: str
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "helper.py").write_text("NAME = 'helped'")
    (tmp_path / "flinkpy-conf.yaml").write_text("python.files: lib\n")
    named = "" if way != "Configuration" else "Configuration.from_dict({'python.files': 'lib'})"
    (tmp_path / "job.py").write_text(f"""
from flinkpy.common import Configuration
from flinkpy.datastream import StreamExecutionEnvironment
env = StreamExecutionEnvironment.get_execution_environment({named})
import helper
print(env.from_collection([1]).map(lambda _: __import__("helper").NAME).take(1))
""")
    command = (
        [sys.executable, "job.py"]
        if way != "-D"
        else [sys.executable, "-m", "flinkpy", "run", "-D", "python.files=lib", "job.py"]
    )
    variables = {
        "file": {"FLINKPY_CONF_DIR": "."},
        "environment variable": {"FLINKPY_PYTHON_FILES": "lib"},
    }.get(way, {})
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout, done.returncode) == ("['helped']\n", 0), done.stderr


@pytest.mark.finding("faults 14")
def test_embedded_functions_find_the_interpreter_that_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("python", "before")
    other = tmp_path / "python"
    for chosen in (tmp_path / "same", other):
        chosen.symlink_to(sys.executable) if chosen is not other else chosen.write_text(
            "#!/bin/sh\n"
        )
    other.chmod(0o755)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_python_executable(str(tmp_path / "same"))
    variable = "python"
    assert env.from_collection([1]).map(lambda _: os.environ[variable]).take(1) == [
        str(tmp_path / "same")
    ]
    assert "python.executable" not in caplog.text
    env.set_python_executable(str(other))
    assert env.from_collection([1]).take(1) == [1]
    assert f"and not {other}: start the program with it" in caplog.text


@pytest.mark.finding("faults 11")
def test_folders_of_rocksdb_may_be_file_urls() -> None:
    backend = EmbeddedRocksDBStateBackend()
    backend.set_db_storage_paths("file:///tmp/a/", "file:///tmp/b/", "file://var/c", "/tmp/d")
    assert backend.get_db_storage_paths() == ["/tmp/a", "/tmp/b", "/c", "/tmp/d"]
    assert folders("file:///tmp/a:/tmp/b/, file:/tmp/c") == ["/tmp/a", "/tmp/b", "/tmp/c"]
    assert folders("/profile:/x") == ["/profile", "/x"]
    with pytest.raises(ConfigurationError, match="local folders are needed"):
        folders("/tmp/a,s3://bucket/states")


@pytest.mark.finding("faults 14")
def test_small_things_that_pyflinks_own_tests_ask_for() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    config = env.get_config()
    other = StreamExecutionEnvironment.get_execution_environment().get_config()
    assert (config == other, hash(config) == hash(other)) == (True, True)
    with pytest.raises(ProgramError, match=r"set_task_heap_memory_mb\(\.\.\.\), too"):
        SlotSharingGroup.builder("one").set_cpu_cores(1.0).build()
    assert (
        FileSystemCheckpointStorage("file://var/checkpoints/").get_checkpoint_path()
        == "file://var/checkpoints"
    )
    assert (
        JobManagerCheckpointStorage("/var/checkpoints/").get_checkpoint_path() == "/var/checkpoints"
    )
    assert FileSystemCheckpointStorage("file:///").get_checkpoint_path() == "file:///"
