"""A line for each operator that has state, or rows that change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from flinkpy.actors.gateways import VertexDetails
from flinkpy.cluster.display.vertex_rates import human
from flinkpy.metrics.definitions import ENTRIES, OF_CHANGES, STATE_BYTES


def operator_lines(vertex: VertexDetails) -> list[str]:
    """The lines of a vertex.

    >>> from flinkpy.actors.gateways import OperatorDetails, VertexDetails
    >>> counted = {"numRecordsIn": 5, "numRecordsOut": 4, "numDeleteRecordsIn": 2}
    >>> join = OperatorDetails("Join", {**counted, ENTRIES: 1200, STATE_BYTES: 64_000})
    >>> operator_lines(VertexDetails("v", "Join", 1, {}, operators=(join,)))
    ['Join: state of 1.2 k entries, 64.0 kB; in +I 3, -D 2; out +I 4']
    """
    return [f"{each.name}: {'; '.join(_facts(each.values))}" for each in vertex.operators]


def _facts(values: Mapping[str, float]) -> Iterator[str]:
    sizes = []
    if ENTRIES in values:
        sizes.append(f"{human(values[ENTRIES])} entries")
    if STATE_BYTES in values:
        size = human(values[STATE_BYTES])
        sizes.append(f"{size}B" if size[-1].isalpha() else f"{size} B")
    if sizes:
        yield f"state of {', '.join(sizes)}"
    if values.keys() & OF_CHANGES.keys():
        for way in ("In", "Out"):
            changes = {
                sign: values.get(name, 0) for name, sign in OF_CHANGES.items() if name.endswith(way)
            }
            added = values.get(f"numRecords{way}", 0) - sum(changes.values())
            counts = {"+I": added, **changes}
            told = ", ".join(f"{sign} {human(count)}" for sign, count in counts.items() if count)
            yield f"{way.lower()} {told or 'none'}"
