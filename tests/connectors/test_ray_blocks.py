"""Blocks in Ray's object store as a source and as a sink, on a real Ray cluster; Spark has no part
in it."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import ray

from flinkpy.common import Types, WatermarkStrategy
from flinkpy.connectors.ray.block_keeper import BlockUpdates
from flinkpy.connectors.ray.block_sink import RayBlockSink
from flinkpy.connectors.ray.block_source import BlockReader, BlockSplit
from flinkpy.connectors.ray.object_store import NAMESPACE, Store, make_keeper, normalize_for_ray
from flinkpy.connectors.ray.written_blocks import BlockRange
from flinkpy.connectors.source_api.readers import UNTIL_WOKEN
from flinkpy.connectors.source_api.source import ReaderContext
from flinkpy.core.clock import ManualClock
from flinkpy.core.errors import (
    FlinkpyError,
    JobExecutionError,
    ProgramError,
    ResourceUnavailableError,
)
from flinkpy.datastream import DataStream, StreamExecutionEnvironment
from flinkpy.datastream.env.ray_sources import read_kept_blocks
from flinkpy.table.expressions import col
from tests.checkpoints.paced import PacedSource
from tests.waiting import eventually

# Ray's own
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ray", "ignore::UserWarning:ray", "ignore:`use_:DeprecationWarning"
)

SCHEMA = pa.schema([("n", pa.int64()), ("name", pa.string())])


def block(*numbers: int) -> pa.Table:
    return pa.table({"n": list(numbers), "name": [str(n) for n in numbers]}, SCHEMA)


# -- readers and the queue, by themselves ----------------------------------------------------------


class FakeStore:
    """A store whose blocks are here, or lost, or not here yet."""

    def __init__(self, *blocks: Any) -> None:
        self.blocks = blocks

    def fetch(self, number: int, on_done: Callable[[], None]) -> Future[Any]:
        fetched: Future[Any] = Future()
        if isinstance(self.blocks[number], BaseException):
            fetched.set_exception(self.blocks[number])
        elif self.blocks[number] is not None:
            fetched.set_result(self.blocks[number])
        return fetched


def reader(store: Any, split: BlockSplit, rows: int = 2) -> BlockReader:
    context = ReaderContext(
        0,
        1,
        "here",
        ManualClock(),
        lambda: None,
        lambda event: None,
        lambda: None,
        lambda delay: None,
    )
    return BlockReader(split, store, SCHEMA, rows, context)


def read(source: BlockReader) -> list[int]:
    numbers: list[int] = []
    while (batch := source.next_batch(100)) is not None:
        numbers += batch.data.column("n").to_pylist()  # type: ignore[union-attr]
    return numbers


def test_a_reader_goes_on_where_its_snapshot_stands() -> None:
    store = FakeStore(block(0, 1, 2, 3, 4))
    first = reader(store, BlockSplit("block 0", 0))
    assert first.next_batch(100).data.column("n").to_pylist() == [0, 1]  # type: ignore[union-attr]
    taken = first.snapshot()
    assert taken == BlockSplit("block 0", 0, (), 2)
    rest = read(first)
    assert rest == read(reader(store, taken)) == [2, 3, 4]
    assert first.snapshot().offset == 5
    assert read(reader(store, first.snapshot())) == []


def test_a_reader_whose_block_is_on_its_way_waits_for_it() -> None:
    assert reader(FakeStore(None), BlockSplit("block 0", 0)).next_batch(100) == UNTIL_WOKEN


def test_an_empty_block_ends_at_once_whatever_its_columns() -> None:
    assert read(reader(FakeStore(pa.table({})), BlockSplit("block 0", 0))) == []


def test_a_block_with_its_columns_in_another_order_or_type_is_brought_to_the_schema() -> None:
    odd = pa.table({"name": pa.array(["7"], pa.large_string()), "n": pa.array([7], pa.int32())})
    batch = reader(FakeStore(odd), BlockSplit("block 0", 0)).next_batch(100)
    assert batch.data.schema == SCHEMA  # type: ignore[union-attr]
    assert batch.data.to_pylist() == [{"n": 7, "name": "7"}]  # type: ignore[union-attr]


def test_a_lost_block_is_named_with_its_reason() -> None:
    with pytest.raises(
        ResourceUnavailableError, match=r"block 0 of the data handed over is lost: the node died"
    ):
        reader(
            FakeStore(RuntimeError("the node died\nand more")), BlockSplit("block 0", 0)
        ).next_batch(100)


def test_nested_columns_as_java_writes_them_are_made_so_that_ray_can_put_them() -> None:
    from ray._private.arrow_serialization import _arrow_table_reduce

    # no offset at all
    inner = pa.Array.from_buffers(
        pa.list_(pa.string()), 0, [None, pa.py_buffer(b"")], children=[pa.array([], pa.string())]
    )
    column = pa.Array.from_buffers(
        pa.list_(inner.type), 2, [None, pa.py_buffer(bytes(12))], children=[inner]
    )
    odd = pa.table({"plain": [1, 2], "nested": column})
    good = normalize_for_ray(odd)
    assert good.equals(odd)
    function, arguments = _arrow_table_reduce(good)
    assert function(*arguments).equals(odd)


# -- on Ray ----------------------------------------------------------------------------------------


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(parallelism)
    return env


def kept(env: StreamExecutionEnvironment, keeper: str, blocks: int) -> DataStream:
    """A stream of so many blocks of the keeper, from no particular host."""
    return DataStream(env, read_kept_blocks(env.program, keeper, [None] * blocks, SCHEMA, "blocks"))


def task_executors() -> list[str]:
    return [
        each["name"]
        for each in ray.util.list_named_actors(all_namespaces=True)
        if each["name"].startswith("taskexecutor-")
    ]


def shelves() -> set[str]:
    keepers = [
        each["name"]
        for each in ray.util.list_named_actors(all_namespaces=True)
        if each["name"].startswith("blocks-")
    ]
    return {
        block_set
        for name in keepers
        for block_set in ray.get(ray.get_actor(name, namespace=NAMESPACE).set_names.remote())
    }


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.parametrize("readers", [1, 2])
def test_every_row_of_every_block_comes_once_empty_blocks_among_them(
    on_ray: None, readers: int
) -> None:
    refs = [ray.put(block(*range(start, start + 1000))) for start in range(0, 5000, 1000)]
    refs[2:2] = [ray.put(block())]
    result = (
        environment(readers)
        .from_blocks(refs, SCHEMA, "blocks")
        .select((col("n") + 1).alias("n"), col("name"))
        .to_arrow()
    )
    assert sorted(result.column(0).to_pylist()) == list(range(1, 5001))


@pytest.mark.wide
@pytest.mark.ray
def test_a_stream_without_any_block_is_empty_and_has_its_columns(on_ray: None) -> None:
    result = environment().from_blocks([], SCHEMA, "blocks").to_arrow()
    assert (result.num_rows, result.schema) == (0, SCHEMA)


@pytest.mark.wide
@pytest.mark.ray
def test_a_dataset_goes_through_a_stream_and_comes_out_a_dataset(on_ray: None) -> None:
    from ray.data import range as dataset_range

    doubled = (
        environment()
        .from_ray_dataset(dataset_range(10_000))
        .select((col("id") * 2).alias("id"))
        .to_ray_dataset()
    )
    assert (doubled.count(), doubled.sum("id")) == (10_000, 99_990_000)


@pytest.mark.wide
@pytest.mark.ray
def test_the_blocks_stay_for_another_run_and_go_when_stream_and_jobs_have(on_ray: None) -> None:
    gc.collect()
    before = shelves()
    stream = environment().from_blocks([ray.put(block(1, 2, 3))], SCHEMA, "blocks")
    (ours,) = shelves() - before
    assert stream.to_arrow().num_rows == 3
    assert stream.to_arrow().num_rows == 3
    assert ours in shelves()
    del stream
    gc.collect()
    eventually(lambda: ours not in shelves())


@pytest.mark.wide
@pytest.mark.ray
def test_the_blocks_go_after_a_job_that_was_still_running_when_the_program_forgot_the_stream(
    on_ray: None,
) -> None:
    before = shelves()
    env = environment()
    env.from_blocks([ray.put(block(*range(1000)))] * 5, SCHEMA, "blocks").to_arrow()
    gc.collect()
    eventually(lambda: not shelves() - before)


class Owner:
    def put(self, start: int) -> list[Any]:
        return [ray.put(block(*range(start, start + 20_000)))]


class FromOwners:
    """Blocks that belong to an actor of their own each, so that they are lost when it dies."""

    count, at_once = 2, 1

    def __init__(self, asked: Path) -> None:
        self.asked = asked
        self.owners: list[Any] = []

    def __call__(self, number: int, place: str) -> Any:
        with self.asked.open("a") as file:
            file.write(f"{number} from {place}, ")
        self.owners.append(
            ray.remote(Owner)
            .options(name=f"owner-{len(self.owners)}", namespace=NAMESPACE, num_cpus=0)
            .remote()
        )
        return ray.get(self.owners[-1].put.remote(number * 20_000))[0]


def is_lost(ref: Any) -> bool:
    """Ray takes a moment to notice that a block's owner is gone, and gives the block until then."""
    try:
        ray.get(ref, timeout=20)
    except ray.exceptions.ObjectLostError:
        return True
    return False


@pytest.mark.wide
@pytest.mark.ray
def test_a_block_that_is_lost_is_made_again_by_its_recipe(on_ray: None, tmp_path: Path) -> None:
    keeper = make_keeper()
    store = begun(keeper, FromOwners(tmp_path / "asked"))
    eventually(lambda: store.gather_blocks({}) == 2)
    ray.kill(ray.get_actor("owner-1", namespace=NAMESPACE))
    ref = store.block_ref(1)[0]
    eventually(lambda: is_lost(ref))
    read = kept(environment(), keeper, 2).to_arrow()
    assert sorted(read.column("n").to_pylist()) == list(range(40_000))
    assert (tmp_path / "asked").read_text() == "0 from there, 1 from there, 1 from there, "


class Slow:
    """Blocks that come when their file does; without a word where it says so."""

    count, at_once = 4, 2

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, number: int, place: str) -> Any:
        (self.folder / f"asked {number}").touch()
        return ray.remote(_when_there).options(num_cpus=0).remote(self.folder, number)


def _when_there(folder: Path, number: int) -> pa.Table:
    eventually(lambda: (folder / f"go {number}").exists())
    if (folder / f"go {number}").read_text():
        raise ValueError("torn to pieces")
    # so large that it goes to the store
    return block(*range(number * 20_000, (number + 1) * 20_000))


@pytest.mark.wide
@pytest.mark.ray
def test_blocks_are_called_for_as_they_can_be_had_only_so_many_of_a_place_at_a_time(
    on_ray: None, tmp_path: Path
) -> None:
    store = begun(make_keeper(), Slow(tmp_path), {2: "a"})
    assert asked(tmp_path) == [2]
    assert store.gather_blocks({0: "a", 1: "a", 3: "b"}) == 0
    assert asked(tmp_path) == [0, 2, 3]  # 1 must wait for one of the two of its place
    assert store.updates(0) == BlockUpdates()
    (tmp_path / "go 0").touch()
    eventually(lambda: store.gather_blocks({}) == 1)
    assert asked(tmp_path) == [0, 1, 2, 3]
    ((first, hosts),) = store.updates(0).blocks
    assert (first, len(hosts)) == (0, 1)
    for number in (1, 2, 3):
        (tmp_path / f"go {number}").touch()
    eventually(lambda: store.gather_blocks({}) == 4)
    assert sorted(number for number, _ in store.updates(1).blocks) == [1, 2, 3]


@pytest.mark.wide
@pytest.mark.ray
def test_a_job_reads_the_blocks_that_are_there_before_the_others_come(
    on_ray: None, tmp_path: Path
) -> None:
    keeper = make_keeper()
    store = begun(keeper, Slow(tmp_path), {0: "a", 1: "a", 2: "b", 3: "b"})
    (tmp_path / "go 2").touch()
    eventually(lambda: store.gather_blocks({}) == 1)
    rows = kept(environment(), keeper, 4)
    with closing(rows.execute_and_collect()) as results:
        assert next(results).n == 40_000
        for number in (0, 1, 3):
            (tmp_path / f"go {number}").touch()
        eventually(lambda: store.gather_blocks({}) == 4)
        assert sum(1 for _ in results) == 79_999
    again = rows.to_arrow()  # the same stream, once more
    assert sorted(again.column("n").to_pylist()) == list(range(80_000))


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.parametrize("before", [True, False])
def test_where_blocks_will_not_come_a_job_that_waits_ends_with_the_reason_and_is_not_begun_again(
    on_ray: None, tmp_path: Path, before: bool
) -> None:
    keeper = make_keeper()
    store = begun(keeper, Slow(tmp_path), {0: "a", 1: "a"})
    env = environment().enable_checkpointing(50)  # whose default is to restart
    rows = kept(env, keeper, 4)
    rows.sink_to(RayBlockSink(make_keeper()))
    if before:
        store.fail_missing("the well has run dry")

    def run() -> None:  # a job that fails while it initialises raises where it is submitted
        job = env.execute_async()
        if not before:
            (tmp_path / "go 0").touch()
            eventually(lambda: store.gather_blocks({}) == 1)
            store.fail_missing("the well has run dry")
        job.get_job_execution_result().result(30)

    with pytest.raises(JobExecutionError, match="failed: the well has run dry"):
        run()


@pytest.mark.wide
@pytest.mark.ray
def test_a_recipe_that_fails_says_why_where_the_blocks_are_gathered(
    on_ray: None, tmp_path: Path
) -> None:
    store = begun(make_keeper(), Slow(tmp_path), {0: "a"})
    (tmp_path / "go 0").write_text("fail")

    def says(reason: str) -> bool:
        try:
            store.gather_blocks({})
        except ray.exceptions.RayError as error:
            return reason in str(error)
        return False

    eventually(lambda: says("torn to pieces"))


def begun(keeper: str, recipe: Any, places: dict[int, str] | None = None) -> Store:
    """The keeper comes by the blocks; at first by those at these places."""
    store = Store(keeper)
    store.expect_blocks(recipe)
    store.gather_blocks(places or dict.fromkeys(range(recipe.count), "there"))
    return store


def asked(folder: Path) -> list[int]:
    return sorted(int(file.name.split()[1]) for file in folder.glob("asked *"))


@pytest.mark.wide
@pytest.mark.ray
def test_what_was_written_outlives_the_workers_that_wrote_it(on_ray: None) -> None:
    refs = [ray.put(block(*range(start, start + 100_000))) for start in range(0, 400_000, 100_000)]
    dataset = environment().from_blocks(refs, SCHEMA, "blocks").to_ray_dataset()
    for name in task_executors():
        with contextlib.suppress(ValueError):  # it has ended by itself
            ray.kill(ray.get_actor(name, namespace=NAMESPACE))
    eventually(lambda: not task_executors())
    assert dataset.sum("n") == sum(range(400_000))


@pytest.mark.wide
@pytest.mark.ray
def test_of_a_job_that_failed_nothing_counts(on_ray: None) -> None:
    keeper = make_keeper()

    def unlucky(row: Any) -> Any:
        if row.n == 1500:
            raise ValueError("not this one")
        return (row.n,)

    env = environment()
    rows = env.from_blocks(
        [ray.put(block(*range(start, start + 1000))) for start in (0, 1000)], SCHEMA, "blocks"
    )
    rows.map(unlucky, Types.ROW_NAMED(["n"], [Types.LONG()])).select("n").sink_to(
        RayBlockSink(keeper, block_bytes=1)
    )
    with pytest.raises(JobExecutionError, match="not this one"):
        env.execute()
    assert not Store(keeper).is_complete()
    assert Store(keeper).committed_blocks() == []


@pytest.mark.wide
@pytest.mark.ray
def test_a_later_attempt_takes_the_place_of_an_earlier_one_and_never_the_other_way_round(
    on_ray: None,
) -> None:
    store = Store(make_keeper())
    for attempt, number in ((0, 10), (1, 11)):
        store.put(block(number), 0, attempt, lambda: None)
    store.put(block(20), 1, 0, lambda: None)
    for subtask, attempt in ((0, 1), (0, 0), (1, 0)):
        assert store.committed_blocks() == []  # the other subtask has not
        store.await_written(subtask, attempt)
        store.commit_written(BlockRange("", subtask, attempt, 1, of_subtasks=2, begins_anew=True))
    assert [table.column("n").to_pylist() for table in ray.get(store.committed_blocks())] == [
        [11],
        [20],
    ]


@pytest.mark.wide
@pytest.mark.ray
def test_a_job_that_fails_between_two_checkpoints_gives_each_record_once(
    on_ray: None, tmp_path: Path
) -> None:
    record = Types.ROW_NAMED(["n"], [Types.LONG()])

    def fragile(n: int) -> tuple[int]:
        if n == 105 and not (tmp_path / "failed").exists():
            (tmp_path / "failed").touch()
            raise ValueError("once")
        return (n,)

    keeper = make_keeper()
    env = environment(2).enable_checkpointing(20)
    numbers = env.from_source(
        PacedSource([(n, n) for n in range(200)]), WatermarkStrategy.no_watermarks(), "numbers"
    )
    numbers.map(fragile, record).select("n").sink_to(RayBlockSink(keeper))
    env.execute()
    assert (tmp_path / "failed").exists()
    blocks = ray.get(Store(keeper).committed_blocks())
    assert sorted(n for table in blocks for n in table.column("n").to_pylist()) == list(range(200))
    assert len(blocks) > 2  # one for each checkpoint


@pytest.mark.wide
@pytest.mark.ray
def test_a_keeper_that_is_gone_says_whose_program_must_go_on(on_ray: None) -> None:
    with pytest.raises(
        ResourceUnavailableError, match="the program that handed them over has ended"
    ):
        Store("blocks-gone")


@pytest.mark.wide
@pytest.mark.ray
def test_rows_and_foreign_objects_are_refused(on_ray: None) -> None:
    env = environment()
    with pytest.raises(ProgramError, match=r"takes a ray\.data\.Dataset, this is a list"):
        env.from_ray_dataset([1, 2])
    with pytest.raises(FlinkpyError, match="ROW_NAMED"):
        env.from_collection([object()]).to_ray_dataset()
