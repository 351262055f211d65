"""Queries of Nexmark become plans of STREAMING whose rows are only added; the others are refused,
and say what would change rows that went out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from flinkpy.common.logical_types.logical_type import BigIntType
from flinkpy.sql.functions.function_port import Argument, Function, FunctionKind, Signature
from flinkpy.sql.parsing import parse_statement
from flinkpy.sql.plans.physical_text import physical_text
from flinkpy.sql.plans.planner import Planner
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.sql.syntax.statements import Insert
from tests.sql.planning import Session, session_of

_NEXMARK = Path(__file__).parents[2] / "examples" / "nexmark" / "sql"


@dataclass(frozen=True)
class CountChar:
    """The user's function of q14."""

    name: str = "count_char"
    kind: FunctionKind = FunctionKind.SCALAR
    can_fail: bool = False
    deterministic: bool = True

    def bind(self, arguments: Sequence[Argument], options: Mapping[str, object]) -> Signature:
        return Signature(tuple(each.type for each in arguments), BigIntType())


@dataclass(frozen=True)
class SessionWithFunction(Session):
    def find_function(self, parts: Sequence[str]) -> Function | None:
        return CountChar() if parts[-1].lower() == "count_char" else None


@pytest.fixture(scope="module")
def session() -> Session:
    made = session_of((_NEXMARK / "tables.sql").read_text())
    return SessionWithFunction(**vars(made))


def plan_of(session: Session, number: int, is_batch: bool = False) -> str:
    statement = parse_statement((_NEXMARK / f"q{number}.sql").read_text())
    assert isinstance(statement, Insert)
    planner = Planner(replace(session, is_batch=is_batch).context, is_batch)
    return physical_text(planner.query(statement.query).physical)


@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 7, 8, 10, 11, 12, 14, 20, 21, 22])
def test_a_query_that_only_adds_rows_is_planned(session: Session, number: int) -> None:
    assert plan_of(session, number).startswith("Sink(name=[collect]")


@pytest.mark.parametrize("number", [4, 9, 15, 16, 17, 18, 19])
def test_a_query_whose_rows_change_is_planned_too(session: Session, number: int) -> None:
    assert plan_of(session, number).startswith("Sink(name=[collect]")


def test_over_behind_a_join_is_refused(session: Session) -> None:
    with pytest.raises(ValidationError, match="input rows of a regular join") as error:
        plan_of(session, 6)
    assert "execution.runtime-mode" in str(error.value)


@pytest.mark.parametrize("number", [4, 6, 9, 15, 16, 17, 18, 19])
def test_the_same_query_is_planned_in_batch(session: Session, number: int) -> None:
    assert plan_of(session, number, is_batch=True).startswith("Sink(name=[collect]")


def test_a_window_behind_a_join_that_keeps_rows_is_refused(session: Session) -> None:
    query = (
        "SELECT window_start, COUNT(*) FROM TABLE(TUMBLE(TABLE j, DESCRIPTOR(`dateTime`), "
        "INTERVAL '10' SECOND)) GROUP BY window_start, window_end"
    )
    joined = "WITH j AS (SELECT bid.* FROM bid JOIN auction ON bid.auction = auction.id) "
    with pytest.raises(ValidationError, match="must not be in the input rows of a regular join"):
        session.plan(joined + query)


def test_windows_of_bids_are_counted_where_the_rows_are(session: Session) -> None:
    shown = plan_of(session, 5)
    window = "HOP(time_col=[dateTime], size=[10 s], slide=[2 s])"
    assert f"WindowAggregate(groupBy=[auction], window=[{window}]" in shown
    assert "HOP(win_start=[starttime], win_end=[endtime]" in shown  # groups of windows, not of time
    assert "joinType=[INNER]" in shown
    assert "WindowTableFunction" not in shown


def test_a_window_in_group_by_is_the_same_plan_as_one_in_from(session: Session) -> None:
    size = "INTERVAL '10' SECOND"
    old = (
        f"SELECT auction, TUMBLE_START(`dateTime`, {size}) AS s, COUNT(*) AS n FROM bid "
        f"GROUP BY auction, TUMBLE(`dateTime`, {size})"
    )
    new = (
        "SELECT auction, window_start AS s, COUNT(*) AS n FROM "
        f"TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), {size})) "
        "GROUP BY auction, window_start, window_end, window_time"
    )
    shown = physical_text(session.plan(old).physical)
    assert shown == physical_text(session.plan(new).physical)
    assert "WindowAggregate(groupBy=[auction], window=[TUMBLE(" in shown


def test_the_start_of_a_window_belongs_to_its_group_by(session: Session) -> None:
    with pytest.raises(ValidationError, match=r"TUMBLE_START belongs to GROUP BY TUMBLE"):
        session.plan("SELECT TUMBLE_START(`dateTime`, INTERVAL '10' SECOND) FROM bid")
