"""A job's graph as HTML for a notebook: an SVG without scripts and ids, which brings its own ground
and colours, so that it is readable in any cell.

It says what the page says of a vertex: its operators, its state and parallelism, how busy and how
back-pressured it is, its records. Texts cannot leave their cards, and a graph that is wider than
the cell is drawn smaller, or can be scrolled."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from flinkpy.cluster.display.graph_layout import WIDTH, Edge, Node, layout

OK_BELOW, HIGH_ABOVE = 0.1, 0.5  # shares of time in back-pressure, as Flink's levels
LINES, LETTERS = 4, 27  # of a name
SMALLEST = 0.65  # how far a wide graph is drawn smaller
ABOVE, LINE, SMALL_LINE, BAR = 9, 18, 16, 12

# Each colour for light and for dark. Notebooks say which they are, each in its way; elsewhere the
# reader's system does.
STYLE = """
.flinkpy-graph { color-scheme: light dark; background: light-dark(#fff, #1d2127);
  color: light-dark(#1b1f24, #e6e9ee); border: 1px solid light-dark(#dde1e7, #363d47);
  border-radius: 8px; padding: 8px; font: 13px/1.4 system-ui, "DejaVu Sans", sans-serif; }
[data-jp-theme-light=true] .flinkpy-graph, .vscode-light .flinkpy-graph { color-scheme: light; }
[data-jp-theme-light=false] .flinkpy-graph, .vscode-dark .flinkpy-graph,
html[theme=dark] .flinkpy-graph {
  color-scheme: dark; }
.flinkpy-graph .scroll { overflow-x: auto; }
.flinkpy-graph .drawn { display: block; height: auto; }
.flinkpy-graph .card { overflow: hidden; }
.flinkpy-graph pre { white-space: pre-wrap; color: light-dark(#b01c1c, #ff9090);
  background: none; margin: 8px 0 0; }
.flinkpy-graph text { fill: light-dark(#1b1f24, #e6e9ee); font-size: 11px; }
.flinkpy-graph .name { font-size: 11.5px; font-weight: 600; }
.flinkpy-graph .quiet { fill: light-dark(#4d5560, #a2acb9); }
.flinkpy-graph .waiting { fill: light-dark(#7a4fc0, #c4a5ff); }
.flinkpy-graph .running { fill: light-dark(#0f6238, #5fd39a); }
.flinkpy-graph .finished { fill: light-dark(#0b62c4, #6cb2ff); }
.flinkpy-graph .failed { fill: light-dark(#b01c1c, #ff9090); }
.flinkpy-graph .ground { fill: light-dark(#f6f7f9, #272c34); stroke: light-dark(#dde1e7, #363d47); }
.flinkpy-graph .low .ground { fill: light-dark(#fdf1e3, #3a2f22); }
.flinkpy-graph .high .ground { fill: light-dark(#f9e9e8, #402a2b); }
.flinkpy-graph .side { fill: light-dark(#0f6238, #5fd39a); }
.flinkpy-graph .planned .side { fill: light-dark(#4d5560, #a2acb9); }
.flinkpy-graph .low .side, .flinkpy-graph .busy { fill: light-dark(#d97706, #f5a23d); }
.flinkpy-graph .high .side, .flinkpy-graph .held { fill: light-dark(#a31f18, #ff8b82); }
.flinkpy-graph .bar { fill: light-dark(#dde1e7, #363d47); }
.flinkpy-graph .edge { fill: none; stroke: light-dark(#4d5560, #a2acb9); stroke-width: 1.8; }
.flinkpy-graph .edge.low { stroke: light-dark(#d97706, #f5a23d); }
.flinkpy-graph .edge.high { stroke: light-dark(#a31f18, #ff8b82); stroke-width: 3; }
.flinkpy-graph .label { font-size: 10px; text-anchor: middle; }
"""


@dataclass(frozen=True)
class Load:
    """Shares of the last seconds: those of the vertex's busiest and of its most back-pressured
    subtask."""

    busy: float
    held: float

    @property
    def level(self) -> str:
        return "high" if self.held > HIGH_ABOVE else "low" if self.held > OK_BELOW else "ok"


@dataclass(frozen=True)
class Card:
    """What is shown of a vertex. ``inputs`` are the cards before it that it reads, and how the
    records come. ``state`` is a text and its kind (waiting, running, finished, failed, quiet).
    Without a ``load`` it is planned, and does not run."""

    operators: tuple[str, ...]
    state: tuple[str, str]
    facts: tuple[str, ...] = ()
    load: Load | None = None
    inputs: tuple[tuple[int, str], ...] = ()

    @property
    def names(self) -> list[str]:
        """A line for each operator, as many as there is room for."""
        if len(self.operators) <= LINES:
            return list(self.operators)
        return [*self.operators[: LINES - 1], f"… {len(self.operators) - LINES + 1} more"]

    @property
    def height(self) -> int:
        return (
            ABOVE
            + LINE * len(self.names)
            + SMALL_LINE * (1 + len(self.facts))
            + (0 if self.load is None else SMALL_LINE + BAR)
            + 6
        )

    @property
    def level(self) -> str:
        return "planned" if self.load is None else self.load.level


def draw(title: str, cards: Sequence[Card], said: Sequence[str] = ()) -> str:
    """The graph as HTML, below its ``title``, which is HTML already; above what is to be ``said``,
    a text each."""
    placed = layout(
        [Node(card.height, tuple(number for number, _ in card.inputs)) for card in cards]
    )
    labels = [label for card in cards for _, label in card.inputs]
    width, height = round(placed.width), round(placed.height)
    edges = "".join(_edge(edge, label, cards) for edge, label in zip(placed.edges, labels))
    drawn = "".join(_card(card, place.x, place.y) for card, place in zip(cards, placed.places))
    graph = (
        (
            f'<div class="scroll"><svg class="drawn" viewBox="0 0 {width} {height}" role="img" '
            f'aria-label="Graph of the job: {len(cards)} vertices" '
            f'style="width: 100%; max-width: {width}px; min-width: '
            f'{round(width * SMALLEST)}px">{edges}{drawn}</svg></div>'
        )
        if cards
        else ""
    )
    texts = "".join(f"<pre>{escape(text)}</pre>" for text in said)
    return (
        f'<div class="flinkpy-graph"><style>{STYLE}</style><div>{title}</div>{graph}{texts}</div>'
    )


def _card(card: Card, x: float, y: float) -> str:
    state, kind = card.state
    parts = [
        f"<title>{escape(' -> '.join(card.operators))}</title>",
        (
            f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" '
            f'height="{card.height - 1}" rx="7"/>'
        ),
        f'<rect class="side" width="5" height="{card.height}" rx="2"/>',
    ]
    at = ABOVE
    for name in card.names:
        at += LINE
        parts.append(_text(name, at - 5, "name"))
    at += SMALL_LINE
    parts.append(_text(state, at - 4, kind))
    if card.load is not None:
        parts += [
            _bar(card.load, at + 2),
            _text(_words(card.load), at + BAR + SMALL_LINE - 4, "quiet"),
        ]
        at += BAR + SMALL_LINE
    for fact in card.facts:
        at += SMALL_LINE
        parts.append(_text(fact, at - 4, "quiet"))
    return (
        f'<svg class="card {card.level}" x="{x:g}" y="{y:g}" width="{WIDTH}" '
        f'height="{card.height}">{"".join(parts)}</svg>'
    )


def _text(text: str, y: int, kind: str) -> str:
    return (
        f'<text class="{kind}" x="14" '
        f'y="{y}">{escape(shortened(text) if kind == "name" else text)}</text>'
    )


def _words(load: Load) -> str:
    return f"busy {load.busy:.0%} · back-pressured {load.held:.0%}"


def _bar(load: Load, y: int) -> str:
    room = WIDTH - 28
    busy, held = (min(1.0, max(0.0, share)) * room for share in (load.busy, load.held))
    busy = min(busy, room - held)
    return (
        f'<rect class="bar" x="14" y="{y}" width="{room}" height="6" rx="3"/><rect '
        f'class="busy" x="14" y="{y}" width="{busy:.0f}" height="6"/>'
        f'<rect class="held" x="{14 + busy:.0f}" y="{y}" width="{held:.0f}" height="6"/>'
    )


def _edge(edge: Edge, label: str, cards: Sequence[Card]) -> str:
    """Coloured where its producer is held up, and its consumer is busy or held up itself."""
    load = cards[edge.consumer].load
    level = (
        cards[edge.producer].level
        if load is not None and (load.busy > HIGH_ABOVE or load.held > OK_BELOW)
        else ""
    )
    (x, y), (end_x, end_y) = edge.points[0], edge.points[-1]
    path = f"M{x:g},{y:g}"
    for to_x, to_y in edge.points[1:]:
        middle = (x + to_x) / 2
        path += f"C{middle:g},{y:g} {middle:g},{to_y:g} {to_x:g},{to_y:g}"
        x, y = to_x, to_y
    path += f"M{end_x - 7:g},{end_y - 4:g}L{end_x:g},{end_y:g}L{end_x - 7:g},{end_y + 4:g}"
    before_x, before_y = edge.points[-2]
    text = (
        (
            f'<text class="label quiet" x="{(before_x + end_x) / 2:g}" '
            f'y="{(before_y + end_y) / 2 - 5:g}">{escape(label)}</text>'
        )
        if label
        else ""
    )
    return f'<path class="edge {level}" d="{path}"/>{text}'


def operators_of(name: str) -> tuple[str, ...]:
    """Those of a vertex, in Flink's notation of its name.

    >>> operators_of("Source: words -> Map")
    ('Source: words', 'Map')
    """
    return tuple(name.split(" -> "))


def shortened(name: str) -> str:
    """A name in the width of a card; East Asian characters take two places.

    >>> shortened("Window(TumblingEventTimeWindows(3600000))")
    'Window(TumblingEventTimeWi…'
    """
    wide = 0
    for number, character in enumerate(name):
        wide += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if wide > LETTERS:
            return name[: max(0, number - 1)] + "…"
    return name
