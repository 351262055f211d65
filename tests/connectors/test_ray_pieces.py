"""A program's tables and collections on their way to a job on a real Ray cluster."""

from __future__ import annotations

import gc
import pickle
from typing import Any

import pyarrow as pa
import pytest
import ray

from flinkpy.connectors.memory.pieces import Pieces, pieces_of
from flinkpy.connectors.ray.object_store import NAMESPACE, Store
from flinkpy.connectors.ray.stored_pieces import SMALL_BYTES, StoredPieces, handed_over
from flinkpy.core.program.code import dumps, loads
from flinkpy.datastream import StreamExecutionEnvironment
from tests.waiting import eventually

# Ray's own
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning:ray", "ignore::UserWarning:ray", "ignore:`use_:DeprecationWarning"
)

LARGE = [(number, f"{number:020d}") for number in range(100_000)]


class Own:
    """Workers have no such module."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


def values(pieces: Pieces) -> list[Any]:
    """Of pieces that are here."""
    from flinkpy.connectors.memory.pieces import opened

    return [
        value
        for number in range(len(pieces.pieces))
        for value in opened(pieces.fetch(number, lambda: None).result())
    ]


def test_data_travels_beside_the_code_once() -> None:
    pieces = pieces_of([1, 2, 3])
    beside: list[Any] = []
    code = dumps([pieces, {"same": pieces}, 7], out_of_band=beside)
    assert beside == [pieces]
    first, named, seven = loads(code, beside)
    assert first is named["same"] is pieces
    assert seven == 7


@pytest.mark.parametrize(
    "records", [[1, "a", None], [[1], [2]], [Own(1), Own(2)], [{"n": 1}] * 3, []]
)
def test_pieces_that_travel_by_themselves_carry_their_records(records: list[Any]) -> None:
    assert values(pickle.loads(pickle.dumps(pieces_of(records)))) == records


def test_each_piece_knows_its_records() -> None:
    pieces = Pieces(["a", "bc", "def"], [1, 2, 3])
    assert len(pieces) == 6
    assert [pieces.span(index) for index in range(6)] == [
        (0, 0, 1),
        (1, 1, 3),
        (1, 1, 3),
        (2, 3, 6),
        (2, 3, 6),
        (2, 3, 6),
    ]
    assert pieces.rows == [1, 2, 3]


def test_what_is_small_or_outlives_its_program_travels_with_the_job() -> None:
    for pieces in (pieces_of(LARGE[:1000]), Pieces([pa.table({"n": [1, 2]})], [2])):
        ready = handed_over(pieces, outlives_program=False)
        assert all(isinstance(piece, bytes) for piece in ready.pieces)  # type: ignore[attr-defined]
    large = handed_over(pieces_of(LARGE), outlives_program=True)
    assert isinstance(large, Pieces)
    assert values(large) == LARGE


# -- on Ray ----------------------------------------------------------------------------------------


def environment(parallelism: int = 2) -> StreamExecutionEnvironment:
    env = StreamExecutionEnvironment.get_execution_environment({"client.progress": False})
    env.set_parallelism(parallelism)
    return env


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
@pytest.mark.finding("first-use 15")
@pytest.mark.parametrize("parallelism", [1, 3])
@pytest.mark.parametrize(
    "records",
    [LARGE, [{"n": number, "text": text} for number, text in LARGE], [("a", 1)]],
    ids=["tuples", "dicts", "one"],
)
def test_a_collection_is_read_from_the_store_and_again_by_the_next_job(
    on_ray: None, records: list[Any], parallelism: int
) -> None:
    gc.collect()
    eventually(lambda: not shelves())
    stream = environment(parallelism).from_collection(records).set_parallelism(parallelism)
    for _ in range(2):
        with stream.execute_and_collect() as results:
            found = list(results)
        assert (found if parallelism == 1 else sorted(found, key=str)) == (
            records if parallelism == 1 else sorted(records, key=str)
        )
        assert len(shelves()) == (len(records) > 1)
    del stream
    gc.collect()
    eventually(lambda: not shelves())


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.finding("first-use 15")
def test_a_table_is_read_from_the_store_where_slices_of_it_lie(on_ray: None) -> None:
    table = pa.table({"n": range(6_000_000), "x": [0.5] * 6_000_000})
    assert table.nbytes > 80 * SMALL_BYTES
    stream = environment(1).from_arrow(table.slice(1, 5_999_998))
    assert stream.to_arrow().equals(table.slice(1, 5_999_998))
    stored = handed_over(
        stream.recorded.transformation.operator.source.pieces,  # type: ignore[attr-defined]
        outlives_program=False,
    )
    assert isinstance(stored, StoredPieces)
    store = Store(stored.keeper)
    sizes = [
        ray.experimental.get_object_locations(refs)[refs[0]]["object_size"]
        for refs in (store.block_ref(number) for number in range(len(stored.rows)))
    ]
    assert len(sizes) == 3
    assert max(sizes) < 33 << 20  # no slice carries what it was cut from


@pytest.mark.wide
@pytest.mark.ray
@pytest.mark.finding("first-use 15")
def test_data_stays_for_a_job_whose_program_has_forgotten_it(on_ray: None) -> None:
    env = environment(1)
    env.from_collection(LARGE).map(lambda pair: pair[0]).add_sink(lambda value: None)
    job = env.execute_async()
    del env
    gc.collect()
    job.get_job_execution_result().result(60)
    eventually(lambda: not shelves())
