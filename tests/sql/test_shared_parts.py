"""Equal parts of a plan in BATCH are one node."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flinkpy.sql.physical.physical_nodes import Calc, PhysicalNode, TableScan
from tests.sql.planning import Session, table


def nodes(node: PhysicalNode) -> Iterator[PhysicalNode]:
    yield node
    for each in node.inputs:
        yield from nodes(each)


def counted(text: str, *, is_batch: bool = True) -> tuple[int, int]:
    """How many scans, and how many Calcs, the plan has that are nodes of their own."""
    session = Session({"t": table("a INT, b INT"), "u": table("a INT, b INT")}, is_batch=is_batch)
    found = {each.id: each for each in nodes(session.plan(text).physical)}.values()
    scans = [each for each in found if isinstance(each, TableScan)]
    return len(scans), len([each for each in found if isinstance(each, Calc)])


@pytest.mark.parametrize(
    ("text", "scans_and_calcs"),
    [
        ("SELECT a + b FROM t UNION ALL SELECT a + b FROM t", (1, 1)),
        ("SELECT a + RAND() FROM t UNION ALL SELECT a + RAND() FROM t", (1, 2)),
        ("SELECT a + 1 FROM t UNION ALL SELECT a + 2 FROM t", (1, 2)),
        ("SELECT a + b FROM t UNION ALL SELECT a + b FROM u", (2, 2)),
    ],
)
def test_what_is_read_twice_is_computed_once_if_it_is_the_same_each_time(
    text: str, scans_and_calcs: tuple[int, int]
) -> None:
    assert counted(text) == scans_and_calcs


def test_streams_are_computed_for_each_reader() -> None:
    text = "SELECT a + b FROM t UNION ALL SELECT a + b FROM t"
    assert counted(text, is_batch=False) == (2, 2)
