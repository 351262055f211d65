"""What a plan says of changes holds for each of its nodes, and sinks ask for what they can take."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flinkpy.common.types import RowKind
from flinkpy.sql.changes.lasting_values import values_that_do_not_last
from flinkpy.sql.changes.modify_kinds import takes_of, without_before
from flinkpy.sql.changes.upsert_keys import upsert_keys
from flinkpy.sql.physical.physical_nodes import (
    Calc,
    ChangelogNormalize,
    ChangingRank,
    CollectNode,
    Exchange,
    GroupAggregate,
    PhysicalNode,
    RankStrategy,
    RegularJoin,
    SinkNode,
    TableScan,
)
from flinkpy.sql.sql_errors import SqlError, ValidationError
from tests.sql.changes.changing_tables import changing_session
from tests.sql.changes.flink_plans import flink_plans, plan_of

COUNTED = "SELECT customer, product, COUNT(*) AS n FROM orders GROUP BY customer, product"
BEFORE, AFTER = RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER


def nodes_of(root: PhysicalNode) -> Iterator[PhysicalNode]:
    yield root
    for each in root.inputs:
        yield from nodes_of(each)


def planned(statement: str, **options: str) -> PhysicalNode:
    return changing_session(options).plan(statement).physical


def the_only(root: PhysicalNode, kind: type[PhysicalNode]) -> PhysicalNode:
    [found] = [each for each in nodes_of(root) if isinstance(each, kind)]
    return found


def test_each_node_takes_what_its_inputs_give_and_gets_what_it_needs() -> None:
    seen: set[type[PhysicalNode]] = set()
    for asked in flink_plans():
        try:
            root = plan_of(asked).physical
        except SqlError:
            continue
        for node in nodes_of(root):
            seen.add(type(node))
            for each in node.inputs:
                assert without_before(each.changes).kinds <= takes_of(node).kinds, asked.statement
                if each.changes.contains(AFTER):
                    _check_updates(node, each)
    assert {RegularJoin, ChangingRank, ChangelogNormalize, GroupAggregate} <= seen


def _check_updates(node: PhysicalNode, input: PhysicalNode) -> None:
    """Who gets an update without the row before knows which row it is about."""
    if isinstance(node, SinkNode) and not input.changes.contains(BEFORE):
        assert not node.primary_key or frozenset(node.primary_key) in upsert_keys(input)
    if isinstance(node, (GroupAggregate, CollectNode)):
        assert input.changes.contains(BEFORE)
    if isinstance(node, Calc) and node.condition is not None:
        assert input.changes.contains(BEFORE)
    if isinstance(node, ChangingRank):
        assert input.changes.contains(BEFORE) == (node.strategy is RankStrategy.RETRACT)
    if isinstance(node, RegularJoin) and not input.changes.contains(BEFORE):
        is_left = input is node.left
        assert node.left_unique_keys if is_left else node.right_unique_keys
    if isinstance(node, Exchange):
        assert node.changes == input.changes


@pytest.mark.parametrize(
    ("statement", "key"),
    [
        ("SELECT id, name FROM customers", [[0]]),
        ("SELECT name, id, id AS also FROM customers", [[1], [2]]),
        ("SELECT CAST(id AS STRING), name FROM customers", [[0]]),
        ("SELECT CAST(id AS INT), name FROM customers", []),
        ("SELECT name FROM customers", []),
        (COUNTED, [[0, 1]]),
        ("SELECT n, customer FROM (" + COUNTED + ")", []),
        ("SELECT COUNT(*) FROM orders", [[]]),
        ("SELECT product FROM orders UNION ALL SELECT name FROM customers", []),
        ("SELECT c.id, a.balance FROM customers c JOIN accounts a ON c.id = a.id", [[0]]),
        ("SELECT c.id, a.id FROM customers c LEFT JOIN accounts a ON c.id = a.id", [[0]]),
        ("SELECT c.id, a.id FROM customers c FULL JOIN accounts a ON c.id = a.id", []),
        ("SELECT c.id, o.id FROM customers c JOIN orders o ON c.id = o.customer", []),
        ("SELECT id FROM customers WHERE id IN (SELECT customer FROM orders)", [[0]]),
    ],
)
def test_a_key_says_which_row_an_update_is_about(statement: str, key: list[list[int]]) -> None:
    root = planned(statement)
    assert isinstance(root, CollectNode)
    assert sorted(map(sorted, upsert_keys(root.input))) == key


@pytest.mark.parametrize(
    ("statement", "materialize", "is_put_in_order"),
    [
        ("upsert_sink SELECT customer, MAX(product), COUNT(*) FROM orders GROUP BY 1", "auto", 0),
        ("upsert_sink SELECT customer, MAX(product), COUNT(*) FROM orders GROUP BY 1", "force", 1),
        (f"upsert_sink SELECT * FROM ({COUNTED})", "auto", 1),
        (f"upsert_sink SELECT * FROM ({COUNTED})", "none", 0),
        (f"all_sink SELECT * FROM ({COUNTED})", "force", 0),
        ("upsert_sink SELECT customer, product, amount FROM orders", "auto", 0),
        # a customer of another age is joined in another subtask than before
        (
            "upsert_sink SELECT c.id, c.name, a.balance FROM customers c "
            "JOIN accounts a ON c.age = a.id",
            "auto",
            1,
        ),
    ],
)
def test_rows_of_one_primary_key_are_put_in_order_if_they_come_from_several(
    statement: str, materialize: str, is_put_in_order: int
) -> None:
    statement = statement.replace("GROUP BY 1", "GROUP BY customer")
    options = {"table.exec.sink.upsert-materialize": materialize}
    root = planned(f"INSERT INTO {statement}", **options)
    assert isinstance(root, SinkNode)
    assert root.materialises == bool(is_put_in_order)
    if root.materialises:
        assert isinstance(root.input, Exchange)
        assert root.input.keys == root.primary_key


def test_state_rests_as_long_as_the_option_says() -> None:
    options = {"table.exec.state.ttl": "1 min"}
    root = planned(
        "SELECT o.id, i.price FROM orders o JOIN items i ON o.id = i.id "
        "JOIN (SELECT id, COUNT(*) AS n FROM payments, items GROUP BY id) p ON p.id = i.id",
        **options,
    )
    joins = [each for each in nodes_of(root) if isinstance(each, RegularJoin)]
    assert len(joins) == 3  # also of rows that only come
    assert {(each.left_ttl_ms, each.right_ttl_ms) for each in joins} == {(60_000, 60_000)}
    aggregate = the_only(root, GroupAggregate)
    assert isinstance(aggregate, GroupAggregate)
    assert aggregate.state_ttl_ms == 60_000


def test_a_hint_says_how_long_the_rows_of_a_table_are_kept() -> None:
    hint = "/*+ STATE_TTL('o' = '1d', 'items' = '2h') */"
    join = the_only(
        planned(f"SELECT {hint} o.id FROM orders o JOIN items ON o.id = items.id"), RegularJoin
    )
    assert isinstance(join, RegularJoin)
    assert (join.left_ttl_ms, join.right_ttl_ms) == (86_400_000, 7_200_000)
    options = {"table.exec.state.ttl": "1 min"}
    query = "SELECT /*+ STATE_TTL('orders' = '0s') */ product, SUM(amount) FROM orders GROUP BY 1"
    aggregate = the_only(planned(query.replace("BY 1", "BY product"), **options), GroupAggregate)
    assert isinstance(aggregate, GroupAggregate)
    assert aggregate.state_ttl_ms == 0
    for wrong in ("'nobody' = '1d'", "'orders' = 'long'"):
        with pytest.raises(ValidationError, match="STATE_TTL"):
            planned(f"SELECT /*+ STATE_TTL({wrong}) */ id FROM orders")


def test_a_rank_over_counts_that_may_be_forgotten_keeps_all_rows() -> None:
    top = f"SELECT * FROM ({COUNTED}) ORDER BY n DESC LIMIT 3"
    for ttl, strategy in (("0 ms", RankStrategy.UPDATE_FAST), ("1 h", RankStrategy.RETRACT)):
        rank = the_only(planned(top, **{"table.exec.state.ttl": ttl}), ChangingRank)
        assert isinstance(rank, ChangingRank)
        assert rank.strategy is strategy


def test_a_source_of_changes_is_read_with_its_key_and_filters_nothing_itself() -> None:
    root = planned("SELECT owner FROM accounts WHERE balance > 3")
    scan = the_only(root, TableScan)
    assert isinstance(scan, TableScan)
    assert scan.filters == ()
    assert scan.schema.names == ("id", "owner", "balance")


def test_upserts_without_a_primary_key_are_refused() -> None:
    session = changing_session()
    keyless = {**session.tables, "accounts": session.tables["all_sink"]}
    with pytest.raises(ValidationError, match="requires to define primary key constraint"):
        type(session)(keyless).plan("SELECT k FROM accounts")


def test_values_that_differ_each_time_are_told() -> None:
    """What Flink calls non-deterministic updates."""
    statement = "SELECT id, UUID() FROM customers"
    plan = changing_session().plan(statement)
    [warning] = plan.warnings
    assert "generated by non-deterministic function: UUID" in warning
    assert "[WARNING]" in plan.explain(["PLAN_ADVICE"])
    strategy = {"table.optimizer.non-deterministic-update.strategy": "TRY_RESOLVE"}
    with pytest.raises(ValidationError, match="generated by non-deterministic function: UUID"):
        changing_session(strategy).plan(statement)
    assert not changing_session(strategy).plan("SELECT id, UUID() FROM orders").warnings
    assert values_that_do_not_last(plan.physical, lambda _: True) == []


def test_rows_of_not_in_are_found_by_their_key_if_it_is_one_column() -> None:
    join = the_only(
        planned("SELECT id FROM orders WHERE id NOT IN (SELECT order_id FROM payments)"),
        RegularJoin,
    )
    assert isinstance(join, RegularJoin)
    assert (join.left_keys, join.unknown_keys) == ((), (0, 0))


def test_an_update_that_parts_a_pair_takes_it_back_where_nothing_is_deleted() -> None:
    of_product = "SELECT id AS k, {} AS n FROM orders GROUP BY id"
    counts, sums = of_product.format("COUNT(*)"), of_product.format("SUM(amount)")
    joined = f"FROM ({counts}) x JOIN ({sums}) y ON x.k = y.k"
    insert = f"INSERT INTO upsert_sink SELECT x.k, 'a', x.n {joined}"
    assert str(the_only(planned(insert), RegularJoin).changes) == "[I,UA]"
    parting = planned(f"{insert} AND x.n > y.n")
    assert str(the_only(parting, RegularJoin).changes) == "[I,UB,UA]"
