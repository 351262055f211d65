"""Any valid query of these becomes a plan, in BATCH, without an error of the planner."""

from random import Random

import pytest

from tests.sql.generated_queries import TABLES, QueryMaker
from tests.sql.planning import Session, table

_SESSION = Session(
    {
        name: table(", ".join(f"{column} {type}" for column, type in columns.items()))
        for name, columns in TABLES.items()
    },
    {"t": 100, "u": 1_000, "v": 50},
)


@pytest.mark.wide(but=("first",))
@pytest.mark.parametrize("seeds", [range(20), range(20, 600)], ids=["first", "more"])
def test_a_drawn_query_is_planned_and_explained(seeds: range) -> None:
    for seed in seeds:
        query = QueryMaker(Random(seed)).query()
        assert "== Optimized Physical Plan ==" in _SESSION.plan(query).explain(), query
