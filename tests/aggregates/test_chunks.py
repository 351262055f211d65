"""Collections that grow by chunks."""

from __future__ import annotations

from flinkpy.aggregates.chunks import Chunks


def test_there_are_few_chunks_and_no_value_is_lost() -> None:
    grown = Chunks[frozenset[int]](())
    for number in range(1000):
        grown = grown.with_chunk(frozenset([number]), lambda one, other: one | other)
        assert len(grown.chunks) <= 11
    assert len(grown) == 1000
    assert frozenset().union(*grown.chunks) == frozenset(range(1000))
