"""What somebody who adds a source or a sink must not forget, and what holds of every bounded
source."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import flinkpy.connectors
from flinkpy.connectors.files.reading.column_files import (
    AvroSource,
    CsvSource,
    JsonLinesSource,
    ParquetSource,
)
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.files.writing.file_formats import AvroFormat
from flinkpy.connectors.memory.arrow_tables import ArrowSource
from flinkpy.connectors.memory.datagen import DataGeneratorSource
from flinkpy.connectors.memory.ranges import CollectionSource, NumberSequenceSource
from flinkpy.connectors.source_api.hybrid import HybridSource
from flinkpy.connectors.source_api.source import Source
from flinkpy.core.elements import ColumnBatch
from flinkpy.core.program.public_names import module_of_definition
from flinkpy.operators.sinks.sink_port import Sink
from tests.connectors.harness import World, read_all

# By what docs/connectors.md calls them; None: the engine's own, or only derived from.
SOURCES = {
    "ArrowSource": "env.from_arrow(",
    "AvroSource": "env.from_avro(",
    "CollectionSource": "env.from_collection(",
    "CsvSource": "env.from_csv(",
    "DataGeneratorSource": "env.generate(",
    "HybridSource": "HybridSource",
    "JsonLinesSource": "env.from_json_lines(",
    "KafkaSource": "KafkaSource.builder()",
    "FlinkKafkaConsumer": None,
    "NumberSequenceSource": "env.from_sequence(",
    "ParquetSource": "env.from_parquet(",
    "RayBlockSource": "env.from_ray_dataset(",
    "SocketTextSource": "env.socket_text_stream(",
    "TextFileSource": "env.read_text_file(",
    "WatchedTextFileSource": "monitor_continuously(",
    "CacheSource": None,
    "InMemorySource": None,
    "IterationSource": None,
    "RangeSource": None,
}
SINKS = {
    "CollectSink": "stream.execute_and_collect()",
    "FileSink": "FileSink(",
    "ObjectSink": "sink_to(object)",
    "PrintSink": "stream.print()",
    "FlinkKafkaProducer": "FlinkKafkaProducer(",
    "KafkaSink": "KafkaSink.builder()",
    "KafkaSinkBase": None,
    "DiscardingSink": None,
    "RayBlockSink": "stream.to_ray_dataset()",
    "SocketSink": "SocketSink",
    "StreamingFileSink": None,
    "ReducedUpserts": None,
}
PAGE = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text()


def modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(flinkpy.connectors.__path__, "flinkpy.connectors."):
        yield importlib.import_module(found.name)


def classes() -> Iterator[type[Any]]:
    """Those of flinkpy/connectors."""
    for module in modules():
        yield from (
            each
            for each in vars(module).values()
            if inspect.isclass(each) and module_of_definition(each) == module.__name__
        )


CLASSES = list(classes())


@pytest.mark.parametrize(
    ("kind", "calls", "heading"),
    [(Source, SOURCES, "## Sources"), (Sink, SINKS, "## Sinks")],
    ids=["sources", "sinks"],
)
def test_the_page_of_connectors_says_how_each_is_called(
    kind: type[Any], calls: dict[str, str | None], heading: str
) -> None:
    """A new one gets a row on the page, and its call an entry above."""
    there = {
        each.__name__ for each in CLASSES if issubclass(each, kind) and not inspect.isabstract(each)
    }
    assert there == set(calls)
    section = PAGE.partition(f"{heading}\n")[2].partition("\n## ")[0]
    assert [call for call in calls.values() if call is not None and call not in section] == []


def test_every_source_says_whether_its_records_have_timestamps() -> None:
    """Where they have none, a program with windows of event time is refused while it is built."""
    sources = [each for each in CLASSES if issubclass(each, Source) and each is not Source]
    assert [
        each.__name__
        for each in sources
        if not any("has_timestamps" in vars(base) for base in each.__mro__ if base is not Source)
    ] == []


# Ray's need Ray: tests/connectors/test_ray_blocks.py, test_ray_pieces.py. The producer is a
# KafkaSink that is built otherwise.
NOT_IN_THE_KIT = {"RayBlockSource", "RayBlockSink", "FlinkKafkaProducer"}


def test_every_connector_runs_in_the_kit() -> None:
    for file, calls in (
        ("test_sources_in_the_kit.py", SOURCES),
        ("test_sinks_in_the_kit.py", SINKS),
    ):
        suites = "".join(
            (Path(__file__).parents[1] / room / file).read_text()
            for room in ("connectors", "kafka")
        )
        missing = {
            name
            for name, call in calls.items()
            if call is not None and not re.search(rf"{name}[( .]", suites)
        }
        # CollectServer makes that one
        assert missing - {"CollectSink"} == NOT_IN_THE_KIT & calls.keys()


def test_every_split_is_frozen() -> None:
    """It is handed from one to the other, and part of checkpoints."""
    splits = [each for each in CLASSES if is_dataclass(each) and "split_id" in each.__annotations__]
    assert len(splits) > 5
    assert [each.__name__ for each in splits if not each.__dataclass_params__.frozen] == []  # type: ignore[attr-defined]


# -- what holds of all that end --------------------------------------------------------------------

COUNT = 90
TABLE = pa.table({"n": list(range(COUNT))})


def lines(folder: Path, made: list[str]) -> Path:
    (folder / "lines").write_text("".join(f"{line}\n" for line in made))
    return folder / "lines"


def csv_file(folder: Path) -> Path:
    pyarrow.csv.write_csv(TABLE, folder / "n.csv")
    return folder / "n.csv"


def parquet_file(folder: Path) -> Path:
    pyarrow.parquet.write_table(TABLE, folder / "n.parquet", row_group_size=20)
    return folder / "n.parquet"


def avro_file(folder: Path) -> Path:
    part = AvroFormat().open(open(folder / "n.avro", "wb"))  # noqa: SIM115  (the part closes it)
    part.write(ColumnBatch(TABLE.to_batches()[0]))
    part.close()
    return folder / "n.avro"


BOUNDED: dict[str, Callable[[Path], Source[Any]]] = {
    "ArrowSource": lambda folder: ArrowSource(TABLE, 7),
    "AvroSource": lambda folder: AvroSource(avro_file(folder), batch_rows=9),
    "CollectionSource": lambda folder: CollectionSource(range(COUNT)),
    "CsvSource": lambda folder: CsvSource(csv_file(folder)),
    "DataGeneratorSource": lambda folder: DataGeneratorSource(int, COUNT),
    "HybridSource": lambda folder: HybridSource(
        [NumberSequenceSource(0, 9), NumberSequenceSource(10, COUNT - 1)]
    ),
    "JsonLinesSource": lambda folder: JsonLinesSource(
        lines(folder, [f'{{"n": {number}}}' for number in range(COUNT)]), split_bytes=100
    ),
    "NumberSequenceSource": lambda folder: NumberSequenceSource(0, COUNT - 1),
    "ParquetSource": lambda folder: ParquetSource(parquet_file(folder), batch_rows=9),
    "TextFileSource": lambda folder: TextFileSource(
        lines(folder, list(map(str, range(COUNT)))), split_bytes=40
    ),
}
OTHERS = {  # and where their tests are
    "KafkaSource": "tests/kafka/test_reading.py, as it needs a broker",
    "RayBlockSource": "tests/connectors/test_ray_blocks.py, as it needs Ray",
    "SocketTextSource": "tests/connectors/test_sockets.py: cannot be read again",
    "WatchedTextFileSource": "tests/connectors/test_chained_and_watched.py: has no end",
}


def numbers(values: list[Any]) -> list[int]:
    return sorted(
        int(value[0])
        if isinstance(value, tuple) or hasattr(value, "get_fields_by_names")
        else int(value)
        for value in values
    )


def test_every_source_that_ends_is_read_here() -> None:
    assert BOUNDED.keys() | OTHERS.keys() == {
        name for name, call in SOURCES.items() if call is not None
    }


@pytest.mark.parametrize("name", BOUNDED)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    readers=st.integers(1, 4),
    seed=st.integers(0, 1000),
    size=st.sampled_from([1, 8, 100]),
    doubled=st.sampled_from([0.0, 0.3]),
)
def test_every_record_comes_once_whoever_reads_it(
    tmp_path: Path, name: str, readers: int, seed: int, size: int, doubled: float
) -> None:
    assert numbers(read_all(BOUNDED[name](tmp_path), readers, seed, doubled, size)) == list(
        range(COUNT)
    )


@pytest.mark.parametrize("name", BOUNDED)
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    before=st.integers(1, 3),
    after=st.integers(1, 3),
    steps=st.integers(0, 60),
    size=st.sampled_from([1, 8, 100]),
    seed=st.integers(0, 1000),
)
def test_from_a_checkpoint_the_rest_is_read_by_any_number_of_readers(
    tmp_path: Path, name: str, before: int, after: int, steps: int, size: int, seed: int
) -> None:
    first = World(BOUNDED[name](tmp_path), before, seed, batch_records=size)
    for _ in range(steps):
        first.step()
    second = first.checkpoint(after)
    second.run()
    assert (first.errors, second.errors) == ([], [])
    assert second.finished
    assert numbers(first.values + second.values) == list(range(COUNT))
    first.close()
    second.close()
