"""The 22 queries of TPC-H become plans without cross products, in little time."""

import time
from pathlib import Path

import pytest

from flinkpy.sql.plans.physical_text import physical_text
from tests.sql.planning import tpch

_QUERIES = sorted((Path(__file__).parent / "tpch").glob("q*.sql"))


def plan_of(number: int) -> str:
    return physical_text(tpch().plan(_QUERIES[number - 1].read_text()).physical)


@pytest.mark.parametrize("file", _QUERIES, ids=lambda file: file.stem)
def test_a_query_of_tpch_joins_by_keys(file: Path) -> None:
    shown = physical_text(tpch().plan(file.read_text()).physical)
    uncorrelated_values = {"q11": 1, "q22": 1}  # one row, compared with all others
    assert shown.count("NestedLoopJoin") == uncorrelated_values.get(file.stem, 0)


@pytest.mark.wide
@pytest.mark.parametrize("file", _QUERIES, ids=lambda file: file.stem)
def test_a_query_of_tpch_is_planned_within_50_ms(file: Path) -> None:
    session, text = tpch(), file.read_text()
    session.plan(text)
    begun = time.process_time()
    session.plan(text)
    assert time.process_time() - begun < 0.05


def test_common_parts_of_alternatives_become_keys_in_q19() -> None:
    assert "HashJoin(joinType=[INNER], where=[(l_partkey = p_partkey) AND" in plan_of(19)


def test_scans_read_only_what_q6_needs() -> None:
    assert "fields=[l_quantity, l_extendedprice, l_discount, l_shipdate], filter=" in plan_of(6)


def test_exists_is_a_semi_join_and_not_exists_an_anti_join_in_q21() -> None:
    shown = plan_of(21)
    semi = "where=[(l_orderkey = l_orderkey) AND (l_suppkey <> l_suppkey)]"
    assert f"HashJoin(joinType=[SEMI], {semi}" in shown
    assert f"HashJoin(joinType=[ANTI], {semi}" in shown


def test_the_correlated_average_of_q17_has_one_group_for_each_part() -> None:
    shown = plan_of(17)
    assert "groupBy=[$c1]" in shown
    assert "LEFT" not in shown  # a comparison with it needs no rows without one
