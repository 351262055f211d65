"""How many records went into and out of a chain and each of its operators. All of it may be read
from any thread."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from flinkpy.common.types import RowKind
from flinkpy.core.ids import OperatorId
from flinkpy.network.port import Traffic
from flinkpy.operators.chain.fusion import FusedRun
from flinkpy.operators.chain.outputs import OperatorCounters, RecordWriterOutput

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

KINDS = {
    RowKind.UPDATE_BEFORE: "numUpdateBeforeRecords",
    RowKind.UPDATE_AFTER: "numUpdateAfterRecords",
    RowKind.DELETE: "numDeleteRecords",
}


class ChainMetrics:
    """``counters`` and ``operators`` are in the order of the chain; ``runs``: the fused runs, by
    the position of their first operator."""

    def __init__(
        self,
        operators: Sequence[OperatorId],
        counters: Sequence[OperatorCounters],
        runs: Mapping[int, FusedRun],
        writers: Sequence[RecordWriterOutput],
    ) -> None:
        self._operators = operators
        self._counters = counters
        self._runs = runs
        self._writers = writers

    @property
    def records_in(self) -> int:
        """Records the head took from the network; 0 for a source."""
        return self._counters[0].records_in

    @property
    def records_out(self) -> int:
        """Records written to the network. In a job that is one chain, and so writes none: records
        its source emitted."""
        if not self._writers and not self._counters[0].records_in:
            return self._counters[0].records_out
        return sum(output.writer.records for output in self._writers)

    def of_operators(self) -> tuple[tuple[OperatorId, int, int], ...]:
        """Per operator: id, records in, records out."""
        counted = [(counter.records_in, counter.records_out) for counter in self._counters]
        for head, run in self._runs.items():
            counted[head : head + len(run.operators)] = run.counters()
        return tuple((operator_id, *pair) for operator_id, pair in zip(self._operators, counted))

    def kinds_of_operators(self) -> list[dict[str, int]]:
        """Per operator: how many rows that are no inserts went in and out, if there were any."""
        return [
            _by_kind("In", counter.kinds_in) | _by_kind("Out", counter.kinds_out)
            for counter in self._counters
        ]

    def traffic_out(self) -> Traffic:
        """What was written to the network."""
        return sum((output.writer.traffic() for output in self._writers), Traffic())

    def watermarks(self) -> tuple[tuple[int, int], ...]:
        """Per operator: the last watermark that came in, and that went out; MIN_TIMESTAMP before
        the first."""
        return tuple((counter.watermark_in, counter.watermark_out) for counter in self._counters)

    @property
    def expansion(self) -> float:
        """The most records any operator has made of each one that entered the chain; at least 1."""
        counted = self.of_operators()
        entered = counted[0][1] or counted[0][2]
        return max(1.0, max(out for _, _, out in counted) / entered) if entered else 1.0


def _by_kind(way: str, counts: npt.NDArray[np.int64] | None) -> dict[str, int]:
    if counts is None:
        return {}
    return {f"{name}{way}": int(counts[kind.value]) for kind, name in KINDS.items()}
