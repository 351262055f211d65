"""Where the vertices and edges of a drawn graph lie: for any graph, however its vertices read each
other."""

from __future__ import annotations

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from flinkpy.cluster.display.graph_layout import WIDTH, Layout, Node, Place, layout


@st.composite
def graphs(draw: st.DrawFn) -> list[Node]:
    """Each node reads some of those before it, perhaps one of them twice."""
    count = draw(st.integers(0, 14))
    producers = [
        draw(st.lists(st.integers(0, number - 1), max_size=4)) if number else []
        for number in range(count)
    ]
    return [Node(draw(st.integers(40, 160)), tuple(each)) for each in producers]


def overlap(one: Place, other: Place) -> bool:
    return (
        abs(one.x - other.x) < WIDTH
        and one.y < other.y + other.height
        and other.y < one.y + one.height
    )


@given(graphs())
def test_no_two_cards_overlap_and_all_lie_in_the_drawing(nodes: list[Node]) -> None:
    drawn = layout(nodes)
    assert [place.height for place in drawn.places] == [node.height for node in nodes]
    assert not [pair for pair in combinations(drawn.places, 2) if overlap(*pair)]
    for place in drawn.places:
        assert 0 <= place.x <= drawn.width - WIDTH
        assert 0 <= place.y <= drawn.height - place.height


@given(graphs())
def test_each_edge_goes_from_its_producers_side_to_its_consumers(nodes: list[Node]) -> None:
    drawn = layout(nodes)
    wanted = [(each, number) for number, node in enumerate(nodes) for each in node.producers]
    assert [(edge.producer, edge.consumer) for edge in drawn.edges] == wanted
    for edge in drawn.edges:
        start, end = drawn.places[edge.producer], drawn.places[edge.consumer]
        (x, y), (end_x, end_y) = edge.points[0], edge.points[-1]
        assert (x, end_x) == (start.x + WIDTH, end.x)
        assert start.y < y < start.y + start.height
        assert end.y < end_y < end.y + end.height
    assert len({edge.points for edge in drawn.edges}) == len(drawn.edges)


@given(graphs())
def test_every_edge_goes_forward_and_straight_past_the_cards_between_its_ends(
    nodes: list[Node],
) -> None:
    drawn = layout(nodes)
    for edge in drawn.edges:
        parts = list(pairwise(edge.points))
        assert all(x < to_x for (x, _), (to_x, _) in parts)
        for card in drawn.places:
            if edge.points[0][0] <= card.x < edge.points[-1][0]:
                [(y, to_y)] = [
                    (y, to_y)
                    for (x, y), (to_x, to_y) in parts
                    if (x, to_x) == (card.x, card.x + WIDTH)
                ]
                assert y == to_y
                assert not card.y <= y <= card.y + card.height


@given(graphs())
def test_a_vertex_stands_one_layer_behind_the_last_of_its_producers(nodes: list[Node]) -> None:
    drawn = layout(nodes)
    columns = sorted({place.x for place in drawn.places})
    layers = [columns.index(place.x) for place in drawn.places]
    assert layers == [
        1 + max((layers[each] for each in node.producers), default=-1) for node in nodes
    ]


def test_a_chain_of_equal_cards_is_a_straight_line() -> None:
    drawn = layout([Node(50), *(Node(50, (number,)) for number in range(5))])
    assert len({y for edge in drawn.edges for _, y in edge.points}) == 1


def test_consumers_stand_around_the_middle_of_what_they_read() -> None:
    source, above, below = layout([Node(50), Node(50, (0,)), Node(50, (0,))]).places
    assert (above.y + below.y) / 2 == source.y


def test_a_graph_without_vertices_is_empty() -> None:
    assert layout([]) == Layout(16.0, 8.0, (), ())
