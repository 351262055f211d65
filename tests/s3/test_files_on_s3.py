"""Files in a bucket of a server that speaks S3: read, written exactly once, and as the place of
checkpoints."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from flinkpy.common import WatermarkStrategy
from flinkpy.connectors.files.paths import find_files
from flinkpy.connectors.files.reading.column_files import ParquetSource
from flinkpy.connectors.files.reading.text_files import TextFileSource
from flinkpy.connectors.files.writing.buckets import BucketAssigner
from flinkpy.connectors.files.writing.compaction import FileCompactor, FileCompactStrategy
from flinkpy.connectors.files.writing.file_sink import FileSink
from flinkpy.connectors.files.writing.part_storage import split_location, storage_of
from flinkpy.core.errors import ProgramError
from flinkpy.core.files.file_systems import StoreError, file_system, split_url
from flinkpy.datastream import StreamExecutionEnvironment
from tests.checkpoints.paced import PacedSource, failing_at, failures
from tests.connectors.harness import read_all
from tests.connectors.sink_world import SinkWorld
from tests.ports import free_port
from tests.s3.server import Bucket

TABLE = pa.table({"n": list(range(500)), "name": [f"ø{n % 7}" for n in range(500)]})


def put(bucket: Bucket, path: str, content: bytes) -> None:
    store, within = split_url(bucket.url(path))
    system, root = file_system(store)
    with system.open_output_stream(root + within) as stream:
        stream.write(content)


def test_files_patterns_and_folders_are_found(bucket: Bucket) -> None:
    for path in (
        "in/a.txt",
        "in/b.txt",
        "in/deep/c d%.txt",
        "in/_temporary/d.txt",
        "in/.e.txt",
        "other.txt",
    ):
        put(bucket, path, f"{path}\n".encode())

    def names(path: str) -> list[str]:
        return [
            file.path.removeprefix(f"s3://{bucket.name}/") for file in find_files(bucket.url(path))
        ]

    assert names("in") == names("in/") == ["in/a.txt", "in/b.txt", "in/deep/c d%.txt"]
    assert names("in/*.txt") == ["in/a.txt", "in/b.txt"]
    assert names("in/**/*.txt") == ["in/a.txt", "in/b.txt", "in/deep/c d%.txt"]
    assert names("*/d*") == ["in/deep/c d%.txt"]
    assert names("in/[ab].txt") == ["in/a.txt", "in/b.txt"]
    assert names("other.txt") == ["other.txt"]
    assert read_all(TextFileSource(bucket.url("in/deep"))) == ["in/deep/c d%.txt"]
    with pytest.raises(
        ProgramError, match=f"no such file or directory: s3://{bucket.name}/nothing$"
    ):
        find_files(bucket.url("nothing"))


@pytest.mark.finding("bugs 10")
def test_brackets_in_a_key_are_letters_of_its_name(bucket: Bucket) -> None:
    for path in ("in/a[1].txt", "in/a1.txt", "in/[b]/c.txt"):
        put(bucket, path, f"{path}\n".encode())
    assert read_all(TextFileSource(bucket.url("in/a[1].txt"))) == ["in/a[1].txt"]
    assert read_all(TextFileSource(bucket.url("in/[b]"))) == ["in/[b]/c.txt"]
    assert read_all(TextFileSource(bucket.url("in/a[0-9].txt"))) == ["in/a1.txt"]


@pytest.mark.parametrize("format", ["parquet", "csv", "json"])
def test_columns_go_to_the_bucket_and_back(bucket: Bucket, format: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_arrow(TABLE).sink_to(FileSink(bucket.url("out"), format))
    env.execute("write")
    assert not [name for name in bucket.objects() if "/." in name]
    read: Any = {"parquet": env.from_parquet, "csv": env.from_csv, "json": env.from_json_lines}[
        format
    ]
    assert read(bucket.url("out")).to_arrow().sort_by("n") == TABLE


def test_partitions_are_read_from_the_bucket(bucket: Bucket) -> None:
    by_name = BucketAssigner.by_value(lambda row: f"name={row.name}")
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_arrow(TABLE).sink_to(FileSink(bucket.url("out"), "parquet", buckets=by_name))
    env.execute("write")
    assert {name.split("/")[1] for name in bucket.objects()} == {f"name=ø{n}" for n in range(7)}
    assert sorted(row.n for row in env.from_parquet(bucket.url("out")).take(1000)) == list(
        range(500)
    )


def test_the_place_of_the_server_may_stand_in_the_environment(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(bucket, "a.txt", b"one\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{bucket.host}")
    assert read_all(TextFileSource(f"s3://{bucket.name}/a.txt")) == ["one"]


def test_what_is_wrong_with_the_bucket_is_one_sentence_without_credentials(bucket: Bucket) -> None:
    url = f"s3://key:secret@no-such-bucket/out?{bucket.options}"
    with pytest.raises(ProgramError, match=r"no such file or directory: s3://no-such-bucket/out$"):
        ParquetSource(url)
    env = StreamExecutionEnvironment.get_execution_environment()
    env.from_collection(["a"]).sink_to(FileSink(url, "text"))
    with pytest.raises(Exception, match="cannot write s3://no-such-bucket/out") as raised:
        env.execute("write")
    assert "secret" not in str(raised.value)


# -- exactly once ----------------------------------------------------------------------------------

SINKS: dict[str, dict[str, Any]] = {
    "plain": {},
    "buckets": {"buckets": BucketAssigner.by_value(lambda value: f"b{value % 2}")},
    "joined": {
        "compact": (
            FileCompactStrategy.builder().set_size_threshold(8).build(),
            FileCompactor.concat_file_compactor(),
        )
    },
}


def seen(bucket: Bucket) -> list[int]:
    return sorted(
        int(line)
        for name, content in bucket.objects().items()
        if not name.rpartition("/")[2].startswith(".")
        for line in content.split()
    )


@pytest.mark.parametrize("kind", SINKS)
def test_each_record_is_seen_once_however_the_job_fails(bucket: Bucket, kind: str) -> None:
    world = SinkWorld(FileSink(bucket.url("out"), **SINKS[kind]), 2)
    world.feed(7)
    first = world.barrier()
    assert seen(bucket) == []
    world.feed(4)
    world.complete(first, lambda subtask: subtask == 0)  # the other one is not told
    world.crash()
    assert seen(bucket) == list(range(7))
    world.feed(6)
    world.barrier()
    world.feed(3)
    world.crash()  # behind a checkpoint that is not complete
    assert seen(bucket) == list(range(7))
    world.feed(5)
    world.end_input()
    world.last_checkpoint()
    world.close()
    assert seen(bucket) == list(range(world.position))
    assert not [name for name in bucket.objects() if "/." in name]


def test_a_commit_that_was_cut_off_behind_the_copy_is_done_again(bucket: Bucket) -> None:
    sink = FileSink(bucket.url("out"))
    world = SinkWorld(sink)
    world.feed(3)
    world.barrier()
    hidden = {name: content for name, content in bucket.objects().items() if "/." in name}
    world.complete(world.running[0])
    for name, content in hidden.items():
        put(bucket, name.replace("%", "%25"), content)  # as if it had not been removed
    world.crash()
    assert seen(bucket) == [0, 1, 2]
    assert not [name for name in bucket.objects() if "/." in name]
    world.close()


@pytest.mark.wide
@pytest.mark.parametrize("at", ["s3", "disk"])
def test_a_job_that_fails_and_goes_on_equals_one_that_does_not(
    bucket: Bucket, tmp_path: Path, at: str
) -> None:
    """Its results are in the bucket, and its checkpoints too or on the disk."""
    records: list[tuple[Any, int]] = [((number % 7, number), number * 10) for number in range(240)]
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.enable_checkpointing(10)
    env.program.values.update(
        {
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": 9,
            "restart-strategy.fixed-delay.delay": "1 ms",
        }
    )
    env.get_checkpoint_config().set_checkpoint_storage_dir(
        bucket.url("checkpoints") if at == "s3" else str(tmp_path / "checkpoints")
    )

    def look(record: Any) -> Any:
        if record == (150 % 7, 150) and any(
            name.startswith("checkpoints/") for name in bucket.objects()
        ):
            (tmp_path / "seen").touch()
        return record

    paced = env.from_source(
        PacedSource(records, 10, 1), WatermarkStrategy.for_monotonous_timestamps(), "paced"
    )
    sums = (
        paced.map(look)
        .map(failing_at(tmp_path / "failed", (61 % 7, 61), (150 % 7, 150)))
        .key_by(lambda pair: pair[0])
        .sum(1)
    )
    sums.map(lambda pair: {"key": pair[0], "sum": pair[1]}).sink_to(
        FileSink(bucket.url("out"), "parquet")
    )
    env.execute("sums")
    assert failures(tmp_path / "failed") == 2
    read = env.from_parquet(bucket.url("out")).take(10_000)
    assert sorted((row.key, row.sum) for row in read) == sorted(
        (key, sum(range(key, last + 1, 7))) for (key, last), _ in records
    )
    assert (tmp_path / "seen").exists() == (at == "s3")


# -- what stores and servers are like --------------------------------------------------------------


@pytest.mark.wide
def test_a_server_that_does_not_answer_is_named_with_the_option_that_says_where_it_is(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with pytest.raises(
        ProgramError,
        match=(
            rf"look at s3://lake/in: no server answers at 127.0.0.1:{port}; check "
            r"endpoint_override= and scheme="
        ),
    ):
        find_files(f"s3://lake/in?endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
    storage = storage_of("s3://lake/?region=us-east-1")
    with pytest.raises(
        StoreError,
        match=(
            rf"s3://lake/out/a: no server answers at http://127.0.0.1:{port}; check the variable "
            r"AWS_ENDPOINT_URL"
        ),
    ):
        storage.create("/out/a")
    with pytest.raises(
        StoreError,
        match="cannot give a written part its name s3://lake/out/a: no server answers at",
    ):
        storage.publish("/out/.a", "/out/a")


def test_markers_of_folders_are_no_files(bucket: Bucket) -> None:
    put(bucket, "in/a.txt", b"one\n")
    urllib.request.urlopen(
        urllib.request.Request(
            f"http://{bucket.host}/{bucket.name}/in/deep/", data=b"", method="PUT"
        )
    ).close()
    for path in ("in", "in/", "in/*", "in/**", ""):
        assert [file.path for file in find_files(bucket.url(path))] == [
            f"s3://{bucket.name}/in/a.txt"
        ]
    store, within = split_location(bucket.url("in"))
    assert list(storage_of(store).below(within)) == ["/in/a.txt"]
