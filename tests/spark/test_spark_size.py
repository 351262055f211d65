"""How Spark and the stream share a cluster: numbers only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.spark.spark_size import SparkSize, fit


@pytest.mark.parametrize(
    ("nodes", "stream", "executors", "cores", "size"),
    [
        ([2.0], 1, None, None, (1, 1)),  # the small laptop
        ([4.0], 2, None, None, (1, 2)),
        ([8.0, 8.0], 4, None, None, (2, 6)),  # one executor a node
        ([8.0, 8.0], 4, None, 2, (2, 2)),
        ([8.0, 8.0], 4, 3, None, (3, 4)),  # three of five do not fit two nodes of eight
        ([8.0], 1, 2, 3, (2, 3)),
        ([2.0], 0.5, None, None, (1, 1)),  # slots of half a CPU
        ([0.0, 4.0], 2, None, None, (1, 2)),  # a head without CPUs takes none
        ([4.0], 0, None, None, (1, 4)),
    ],
)
def test_what_is_left_out_is_what_the_stream_leaves(
    nodes: list[float],
    stream: float,
    executors: int | None,
    cores: int | None,
    size: tuple[int, int],
) -> None:
    assert fit(nodes, stream, executors, cores) == SparkSize(*size)


@pytest.mark.parametrize(
    ("nodes", "stream", "executors", "cores", "says"),
    [
        (
            [2.0],
            2,
            None,
            None,
            (
                "1 executor of 1 core, and the stream's slots for 2 CPUs; this Ray "
                "cluster has 2 in "
                "all:"
            ),
        ),
        (
            [4.0],
            1,
            2,
            2,
            (
                "2 executors of 2 cores, and the stream's slots for 1 CPUs; this Ray "
                "cluster has 4 in "
                "all:"
            ),
        ),
        (
            [2.0, 2.0],
            0,
            1,
            4,
            (
                "1 executor of 4 cores, and the stream's slots for 0 CPUs; this Ray "
                "cluster has 4 in "
                "all on 2 nodes:"
            ),
        ),
        ([], 0, None, None, "this Ray cluster has 0 in all"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_numbers_and_what_to_change(
    nodes: list[float], stream: float, executors: int | None, cores: int | None, says: str
) -> None:
    with pytest.raises(ResourceUnavailableError) as refused:
        fit(nodes, stream, executors, cores)
    assert says in str(refused.value)
    assert (
        "lower executors= or cores= of spark_session(), the stream's parallelism "
        "(stream_cpus=), or let a slot take less"
    ) in str(refused.value)


@pytest.mark.parametrize(("executors", "cores"), [(0, None), (-1, None), (None, 0), (1, -2)])
def test_sizes_that_are_none_are_refused(executors: int | None, cores: int | None) -> None:
    with pytest.raises(ResourceUnavailableError, match="at least 1"):
        fit([4.0], 1, executors, cores)


@given(
    st.lists(st.integers(0, 16).map(float), max_size=5),
    st.sampled_from([0.0, 0.5, 1.0, 2.0, 7.0]),
    st.none() | st.integers(1, 6),
    st.none() | st.integers(1, 9),
)
def test_a_size_always_fits_beside_the_stream_and_keeps_what_was_asked(
    nodes: list[float], stream: float, executors: int | None, cores: int | None
) -> None:
    try:
        size = fit(nodes, stream, executors, cores)
    except ResourceUnavailableError:
        return
    assert size.executors >= 1
    assert size.cores >= 1
    assert size.cpus + stream <= sum(nodes)
    assert sum(int(node // size.cores) for node in nodes) >= size.executors
    assert executors in (None, size.executors)
    assert cores in (None, size.cores)
