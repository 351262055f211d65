"""``import pyflink`` under ``flinkpy run --pyflink``."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flinkpy.cli.main import main
from flinkpy.common import pyflink_imports
from flinkpy.core.errors import ProgramError


@pytest.fixture
def pyflink() -> Iterator[None]:
    pyflink_imports.install()
    yield
    pyflink_imports.uninstall()


@pytest.mark.parametrize(
    "name",
    [
        "datastream",
        "datastream.functions",
        "datastream.state",
        "datastream.window",
        "common.typeinfo",
        "common.watermark_strategy",
        "datastream.connectors.file_system",
        "datastream.connectors.number_seq",
        "metrics",
        "metrics.metricbase",
    ],
)
@pytest.mark.usefixtures("pyflink")
def test_a_module_of_pyflink_is_flinkpys_own(name: str) -> None:
    module = __import__(f"pyflink.{name}", fromlist=["x"])
    assert module is sys.modules[f"flinkpy.{name}"]
    assert module.__spec__ is not None
    assert module.__spec__.name == f"flinkpy.{name}"


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("kafka", "FlinkKafkaConsumer"),
        ("kafka", "KafkaSource"),
        ("file_system", "FileSink"),
        ("file_system", "StreamFormat"),
        ("number_seq", "NumberSequenceSource"),
    ],
)
@pytest.mark.usefixtures("pyflink")
def test_connectors_are_also_where_older_programs_find_them(module: str, name: str) -> None:
    older = __import__("pyflink.datastream.connectors", fromlist=[name])
    assert getattr(older, name) is getattr(
        importlib.import_module(f"flinkpy.datastream.connectors.{module}"), name
    )
    with pytest.raises(AttributeError, match="no attribute 'JdbcSink'"):
        older.JdbcSink  # noqa: B018


@pytest.mark.usefixtures("pyflink")
def test_classes_are_the_same_and_pickle_under_their_own_name() -> None:
    from flinkpy.datastream import MapFunction

    Theirs = importlib.import_module("pyflink.datastream.functions").MapFunction
    assert Theirs is MapFunction
    assert b"pyflink" not in pickle.dumps(Theirs)


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("table", "flinkpy.table.expressions"),
        ("java_gateway", "no JVM"),
        ("datastream.connectors.pulsar", "files, Kafka and sockets"),
        ("util.java_utils", "Java objects"),
        ("common.nothing", "pyflink-compatibility.md"),
        ("network", "pyflink-compatibility.md"),
    ],
)
@pytest.mark.usefixtures("pyflink")
def test_what_is_not_there_names_what_to_use_instead(name: str, instead: str) -> None:
    with pytest.raises(
        ImportError, match=rf"flinkpy has no pyflink\.{name.split('.')[0]}"
    ) as caught:
        __import__(f"pyflink.{name}")
    assert instead in str(caught.value)


@pytest.mark.usefixtures("pyflink")
def test_flinkpys_own_table_is_not_found_below_pyflink() -> None:
    import flinkpy.table  # noqa: F401

    with pytest.raises(ImportError, match=r"flinkpy has no pyflink\.table"):
        exec("from pyflink import table")


def test_pyflink_itself_must_not_be_loaded_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyflink", types.ModuleType("pyflink"))
    with pytest.raises(ProgramError, match="was imported before"):
        pyflink_imports.install()


JOB = """
from pyflink.datastream import StreamExecutionEnvironment

def late(value):
    from pyflink.common import Row  # on the worker
    return Row(value).__class__.__module__

env = StreamExecutionEnvironment.get_execution_environment()
env.from_collection([1]).map(late).print()
env.execute()
"""


def test_the_command_line_runs_a_program_for_pyflink(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with pytest.raises(SystemExit):
        main(["run", "--pyflink", str(tmp_path / "job.py")])
    assert capsys.readouterr().out == "flinkpy.common\n"
    assert not pyflink_imports.is_installed()


def test_the_plan_of_a_program_for_pyflink_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    with pytest.raises(SystemExit):
        main(["info", "--pyflink", str(tmp_path / "job.py")])
    assert "Collection Source" in capsys.readouterr().out


def test_a_worker_without_the_program_finds_the_names_by_the_jobs_option(tmp_path: Path) -> None:
    """A task of another process: it has the job's options and its pickled code, nothing else."""
    script = (
        "from flinkpy.core.options.engine import PYFLINK_IMPORTS\nfrom "
        "flinkpy.core.options.schema import read\n"
        "from flinkpy.common.pyflink_imports import install\n"
        "assert read({'python.pyflink-imports': 'true'}, "
        "PYFLINK_IMPORTS)\ninstall()\nfrom pyflink.common import Row\nprint(Row(1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stdout == "<Row(1)>\n"


@pytest.mark.parametrize(
    ("module", "name", "instead"),
    [
        ("avro", "AvroInputFormat", r"env\.from_avro\("),
        ("avro", "AvroBulkWriters", "AvroFormat"),
        ("orc", "OrcBulkWriters", "write Parquet"),
        ("parquet", "AvroParquetReaders", r"env\.from_parquet\("),
        ("parquet", "ParquetColumnarRowInputFormat", r"BulkFormat\.parquet\(columns\)"),
    ],
)
@pytest.mark.usefixtures("pyflink")
def test_a_format_that_is_not_there_names_what_to_use_instead(
    module: str, name: str, instead: str
) -> None:
    with pytest.raises(
        ImportError,
        match=rf"flinkpy has no flinkpy\.datastream\.formats\.{module}\.{name}: .*{instead}",
    ):
        exec(f"from pyflink.datastream.formats.{module} import {name}")
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec(f"from pyflink.datastream.formats.{module} import Nothing")


@pytest.mark.finding("faults 13")
@pytest.mark.usefixtures("pyflink")
def test_whether_a_format_is_there_can_be_asked() -> None:
    avro = importlib.import_module("pyflink.datastream.formats.avro")
    assert not hasattr(avro, "AvroBulkWriters")
    assert hasattr(avro, "AvroSchema")
    with pytest.raises(
        AttributeError,
        match=r"has no flinkpy\.datastream\.formats\.avro\.AvroBulkWriters: .*AvroFormat",
    ):
        avro.AvroBulkWriters  # noqa: B018


@pytest.mark.finding("gaps G11")
@pytest.mark.usefixtures("pyflink")
def test_a_program_may_ask_which_pyflink_it_runs_on() -> None:
    assert importlib.import_module("pyflink.version").__version__ == "2.3.0"


def test_the_parquet_writer_of_pyflink_takes_a_declared_type(tmp_path: Path) -> None:
    from flinkpy.common import Row, Types
    from flinkpy.datastream import StreamExecutionEnvironment
    from flinkpy.datastream.connectors.file_system import FileSink
    from flinkpy.datastream.formats.parquet import ParquetBulkWriters

    env = StreamExecutionEnvironment.get_execution_environment()
    visits: Any = Types.ROW_NAMED(["city", "n"], [Types.STRING(), Types.INT()])
    env.from_collection([("Oslo", 1)]).sink_to(
        FileSink.for_bulk_format(tmp_path, ParquetBulkWriters.for_row_type(visits)).build()
    )
    env.execute()
    assert env.from_parquet(tmp_path).take() == [Row(city="Oslo", n=1)]
    wrong: list[tuple[Any, ...]] = [
        (Types.INT(),),
        (Types.ROW([Types.INT()]), {"fs.s3a.path": "x"}),
    ]
    for arguments in wrong:
        with pytest.raises(ProgramError, match=r"ParquetBulkWriters\.for_row_type\(\)"):
            ParquetBulkWriters.for_row_type(*arguments)
