"""Rates of a job's vertices, computed from the counts that heartbeats carry."""

from __future__ import annotations

from collections.abc import Mapping

from flinkpy.actors.gateways import VertexDetails
from flinkpy.core.lifecycles import ExecutionState

NO_RECORDS = (0.0, 0.0)


def human(number: float) -> str:
    """The number in a form that fits into a column.

    >>> human(1234), human(5_678_000), human(12)
    ('1.2 k', '5.7 M', '12')
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:.0f}"


class Rates:
    """Records per second of every vertex, between one count and the next.

    The elapsed time is that between the counts, not between the calls of ``update``: counts come
    with heartbeats, which may be late, and the vertex goes on meanwhile."""

    # two counts closer together (a regular heartbeat, and a requested one) give no usable rate
    apart_ms = 200

    def __init__(self) -> None:
        self._before: dict[str, VertexDetails] = {}
        self._rates: dict[str, tuple[float, float]] = {}

    def update(
        self, vertices: tuple[VertexDetails, ...], averages: Mapping[str, tuple[float, float]] = {}
    ) -> dict[str, tuple[float, float]]:
        """By vertex id: records in and out per second as of the latest count; zero where no subtask
        runs. ``averages`` are used until there are two counts."""
        for vertex in (each for each in vertices if each.counted_ms):
            before = self._before.setdefault(vertex.vertex_id, vertex)
            elapsed_ms = vertex.counted_ms - before.counted_ms
            if elapsed_ms >= self.apart_ms:
                self._before[vertex.vertex_id] = vertex
                self._rates[vertex.vertex_id] = (
                    max(0, vertex.records_in - before.records_in) * 1000 / elapsed_ms,
                    max(0, vertex.records_out - before.records_out) * 1000 / elapsed_ms,
                )
        return {vertex.vertex_id: self._rate(vertex, averages) for vertex in vertices}

    def _rate(
        self, vertex: VertexDetails, averages: Mapping[str, tuple[float, float]]
    ) -> tuple[float, float]:
        if not vertex.states.get(ExecutionState.RUNNING):
            return NO_RECORDS
        return self._rates.get(vertex.vertex_id) or averages.get(vertex.vertex_id, NO_RECORDS)
