"""Places the vertices of a job in layers, along the flow of its data.

A vertex stands one layer behind the last of its producers. An edge that passes over layers has a
place of its own in each of them, so that it runs beside the cards and never under one. Each layer
is ordered as its producers are, and stands at their height."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 230  # of a card
# LANE: the height of an edge that passes a layer
MARGIN = 8.0
BETWEEN_LAYERS = 76
BETWEEN_CARDS = 22
LANE = 14


@dataclass(frozen=True)
class Node:
    """A vertex: how high its card is, and the nodes before it in the sequence that it reads, once
    for each input."""

    height: int
    producers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where a card lies: its upper left corner."""

    x: float
    y: float
    height: int


@dataclass(frozen=True)
class Edge:
    """One input of a node: a line through the points, from its producer's right side to its own
    left side."""

    producer: int
    consumer: int
    points: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Layout:
    """``places`` in the order of the nodes; ``edges`` in the order of the nodes and of their
    inputs."""

    width: float
    height: float
    places: tuple[Place, ...]
    edges: tuple[Edge, ...]


@dataclass
class _Item:
    """What takes a place in a layer: a card, or an edge that passes."""

    layer: int
    height: int
    before: list[_Item]  # in the layer before
    y: float = 0.0

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    @property
    def x(self) -> float:
        return MARGIN + self.layer * (WIDTH + BETWEEN_LAYERS)

    def wanted(self) -> float:
        """The height at which it would stand behind its producers."""
        return sum(item.middle for item in self.before) / len(self.before)


def layout(nodes: Sequence[Node]) -> Layout:
    """The nodes come after those that they read, as the vertices of a JobGraph do."""
    cards: list[_Item] = []
    layers: list[list[_Item]] = []
    # producer, consumer, and the places that the edge passes between them
    lanes: list[tuple[int, int, list[_Item]]] = []

    def placed(item: _Item) -> _Item:
        if item.layer == len(layers):
            layers.append([])
        layers[item.layer].append(item)
        return item

    for number, node in enumerate(nodes):
        card = _Item(
            1 + max((cards[each].layer for each in node.producers), default=-1), node.height, []
        )
        for producer in node.producers:
            passed = [cards[producer]]
            for between in range(cards[producer].layer + 1, card.layer):
                passed.append(placed(_Item(between, LANE, [passed[-1]])))
            card.before.append(passed[-1])
            lanes.append((producer, number, passed[1:]))
        cards.append(placed(card))
    for items in layers:
        _stack(items)
    found = [item for items in layers for item in items]
    above = MARGIN - min((item.y for item in found), default=0.0)
    for item in found:
        item.y += above
    height = max((item.y + item.height for item in found), default=0.0) + MARGIN
    width = 2 * MARGIN + len(layers) * WIDTH + max(0, len(layers) - 1) * BETWEEN_LAYERS
    return Layout(
        width,
        height,
        tuple(Place(card.x, card.y, card.height) for card in cards),
        _edges(nodes, cards, lanes),
    )


def _stack(layer: list[_Item]) -> None:
    """Puts them one below the other, in the order of their producers; on average, each stands where
    it would be behind its own."""
    if layer[0].before:
        layer.sort(key=_Item.wanted)
    y = 0.0
    for item in layer:
        item.y = y
        y += item.height + BETWEEN_CARDS
    if layer[0].before:
        moved = sum(item.wanted() - item.middle for item in layer) / len(layer)
        for item in layer:
            item.y += moved


def _edges(
    nodes: Sequence[Node], cards: list[_Item], lanes: list[tuple[int, int, list[_Item]]]
) -> tuple[Edge, ...]:
    found, entered = [], [0] * len(nodes)
    for producer, consumer, passed in lanes:
        entered[consumer] += 1
        start, end = cards[producer], cards[consumer]
        enters_at = end.y + end.height * entered[consumer] / (len(nodes[consumer].producers) + 1)
        through = [(x, item.middle) for item in passed for x in (item.x, item.x + WIDTH)]
        found.append(
            Edge(
                producer, consumer, ((start.x + WIDTH, start.middle), *through, (end.x, enters_at))
            )
        )
    return tuple(found)
