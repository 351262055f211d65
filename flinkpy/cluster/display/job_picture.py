"""A snapshot of a job's progress: lines of text in a prompt, its graph in a notebook. It does not
update itself."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flinkpy.actors.gateways import JobDetails, VertexDetails
from flinkpy.cluster.display.vertex_rates import Rates, human
from flinkpy.core.lifecycles import JOB, ExecutionState

if TYPE_CHECKING:
    from flinkpy.cluster.display.graph_drawing import Card

NAME_WIDTH = 60
_KINDS = (
    ("failed", {ExecutionState.FAILED}),
    ("quiet", {ExecutionState.CANCELING, ExecutionState.CANCELED}),
    ("running", {ExecutionState.RUNNING}),
    (
        "waiting",
        {
            ExecutionState.CREATED,
            ExecutionState.SCHEDULED,
            ExecutionState.DEPLOYING,
            ExecutionState.INITIALIZING,
        },
    ),
    ("finished", {ExecutionState.FINISHED}),
)


@dataclass(frozen=True)
class JobPicture:
    """``rates`` are records in and out per second of each vertex. The busy and back-pressured
    shares are those of the vertex's busiest and most back-pressured subtask."""

    details: JobDetails
    elapsed_s: float
    rates: Mapping[str, tuple[float, float]]

    def __str__(self) -> str:
        overview = self.details.overview
        rows = [self._cells(vertex) for vertex in self.details.vertices]
        wide = [max(map(len, column)) for column in zip(*rows)]
        lines = [
            f"  {name:<{wide[0]}}  {tasks:<{wide[1]}}  in {of_in:>{wide[2]}}/s  out "
            f"{of_out:>{wide[3]}}/s  total {total:>{wide[4]}}"
            f"  busy {busy:>{wide[5]}}  back-pressured {held:>{wide[6]}}"
            for name, tasks, of_in, of_out, total, busy, held in rows
        ]
        return "\n".join(
            [
                (
                    f"{overview.name} · {overview.state.value} · {self.elapsed_s:.0f} s · "
                    f"{overview.job_id}"
                ),
                *lines,
                *self._error(),
            ]
        )

    def html(self) -> str:
        """The picture as the job's graph, in HTML; all text is escaped."""
        from flinkpy.cluster.display.graph_drawing import draw

        overview = self.details.overview
        title = (
            f"<b>{html.escape(overview.name)}</b> · {overview.state.value} · "
            f"{self.elapsed_s:.0f} s · <code>{html.escape(overview.job_id)}</code>"
        )
        numbers = {vertex.vertex_id: number for number, vertex in enumerate(self.details.vertices)}
        return draw(
            title, [self._card(vertex, numbers) for vertex in self.details.vertices], self._error()
        )

    def _card(self, vertex: VertexDetails, numbers: Mapping[str, int]) -> Card:
        from flinkpy.cluster.display.graph_drawing import Card, Load, operators_of

        rate_in, rate_out = self.rates[vertex.vertex_id]
        facts = (
            f"in {human(vertex.records_in)} · {human(rate_in)}/s",
            f"out {human(vertex.records_out)} · {human(rate_out)}/s",
        )
        load = Load(vertex.busy_ms_per_second / 1000, vertex.back_pressured_ms_per_second / 1000)
        inputs = tuple((numbers[each.producer], each.ship_strategy) for each in vertex.inputs)
        return Card(operators_of(vertex.name), (states(vertex), _kind(vertex)), facts, load, inputs)

    def _cells(self, vertex: VertexDetails) -> tuple[str, str, str, str, str, str, str]:
        rate_in, rate_out = self.rates[vertex.vertex_id]
        name = (
            vertex.name if len(vertex.name) <= NAME_WIDTH else vertex.name[: NAME_WIDTH - 1] + "…"
        )
        return (
            name,
            states(vertex),
            human(rate_in),
            human(rate_out),
            human(vertex.records_out or vertex.records_in),
            _percent(vertex.busy_ms_per_second),
            _percent(vertex.back_pressured_ms_per_second),
        )

    def _error(self) -> list[str]:
        return [str(self.details.error)] if self.details.error is not None else []


def _percent(ms_per_second: int) -> str:
    return f"{ms_per_second // 10} %"


def _kind(vertex: VertexDetails) -> str:
    """What the state of the vertex is shown as: that of the subtask which matters most."""
    present = {state for state, count in vertex.states.items() if count}
    return next((kind for kind, those in _KINDS if present & those), "waiting")


def states(vertex: VertexDetails) -> str:
    """``2 RUNNING`` and so on.

    >>> from flinkpy.core.lifecycles import ExecutionState
    >>> states(
    ...     VertexDetails("v", "Map", 2, {ExecutionState.RUNNING: 1, ExecutionState.FINISHED: 1})
    ... )
    '1 RUNNING, 1 FINISHED'
    """
    return ", ".join(f"{count} {state.value}" for state, count in vertex.states.items() if count)


class JobPictures:
    """Makes successive pictures of one job. It keeps the last count, as throughput is the
    difference between two; until there is a second count, the average since the job's start is
    shown."""

    def __init__(self) -> None:
        self._rates = Rates()

    def picture(self, details: JobDetails, now_ms: int) -> JobPicture:
        overview = details.overview
        elapsed_s = max(0, (overview.end_ms or now_ms) - overview.start_ms) / 1000
        averages = {vertex.vertex_id: _average(vertex, elapsed_s) for vertex in details.vertices}
        ended = JOB.is_terminal(overview.state)
        return JobPicture(
            details,
            elapsed_s,
            averages if ended else self._rates.update(details.vertices, averages),
        )


def _average(vertex: VertexDetails, elapsed_s: float) -> tuple[float, float]:
    return (
        (vertex.records_in / elapsed_s, vertex.records_out / elapsed_s)
        if elapsed_s > 0
        else (0.0, 0.0)
    )
