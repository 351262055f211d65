from __future__ import annotations

from typing import Any

import pytest

from flinkpy.core import lifecycles
from flinkpy.core.errors import IllegalTransitionError
from flinkpy.core.lifecycles import EXECUTION, JOB, ExecutionState, Lifecycle, StateMachine

TABLES: list[Lifecycle[Any]] = [
    value for value in vars(lifecycles).values() if isinstance(value, Lifecycle)
]


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_state_is_reached_and_every_target_is_in_the_table(table: Lifecycle[Any]) -> None:
    reached, frontier = {table.initial}, [table.initial]
    while frontier:
        for target in table.moves[frontier.pop()]:
            if target not in reached:
                reached.add(target)
                frontier.append(target)
    assert set(table.moves) == reached


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_from_every_state_a_terminal_one_can_be_reached(table: Lifecycle[Any]) -> None:
    can_end = {state for state in table.moves if table.is_terminal(state)}
    assert can_end
    while True:
        more = {state for state, targets in table.moves.items() if set(targets) & can_end} - can_end
        if not more:
            break
        can_end |= more
    assert can_end == set(table.moves)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_machine_allows_exactly_the_moves_of_its_table(table: Lifecycle[Any]) -> None:
    for source in table.moves:
        for target in table.moves:
            machine = StateMachine(table, "it")
            machine.state = source
            assert machine.try_move(target) == (target in table.moves[source])


def test_an_illegal_move_tells_its_story() -> None:
    machine = StateMachine(EXECUTION, "Map (1/2)#0")
    machine.move(ExecutionState.SCHEDULED, "slot granted")
    with pytest.raises(
        IllegalTransitionError,
        match=r"Map \(1/2\)#0.*SCHEDULED to FINISHED.*CREATED→SCHEDULED \(slot granted\)",
    ):
        machine.move(ExecutionState.FINISHED)


def test_the_diagrams_of_the_documentation_come_from_the_tables() -> None:
    diagram = JOB.mermaid()
    assert diagram.startswith("stateDiagram-v2\n    [*] --> INITIALIZING")
    assert "    FINISHED --> [*]" in diagram
