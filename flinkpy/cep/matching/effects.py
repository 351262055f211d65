"""What an event may do to a partial match in a state, as far as is known of the conditions.

The same algebra serves columns, where a truth is an array with one for each event, and rows, where
it is the text of an expression. A condition of which nothing is known may hold and may fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from flinkpy.cep.automaton.pattern_states import Action, State
from flinkpy.cep.event_conditions import Always, Both, Condition, Either, Not

Truth: TypeAlias = Any  # True, False, or what has the operators & and |

_MOST_PATHS = 64  # out of a state; with more of them every event matters there


class Known(NamedTuple):
    """What is known of a condition."""

    may_hold: Truth
    may_fail: Truth


OPEN = Known(True, True)


class Path(NamedTuple):
    """A way out of a state, through PROCEEDs: the conditions on it, whether it takes the event, and
    whether all it does is to ignore it."""

    conditions: tuple[Condition, ...]
    takes: bool
    stays: bool


def may_begin(paths: list[Path] | None, known: dict[Condition, Known]) -> Truth:
    """Which events may begin a match, by the paths of the start."""
    found: Truth = paths is None
    for path in paths or ():
        if path.takes:
            found = found | _may_hold(path, known)
    return found


def may_change(paths: list[Path] | None, known: dict[Condition, Known]) -> Truth:
    """Which events may do anything else than leave a partial match in a state as it is, by the
    paths of the state."""
    staying = [path for path in paths or () if path.stays]
    if paths is None or len(staying) != 1:
        return True
    found: Truth = False
    for path in paths:
        if not path.stays:
            found = found | _may_hold(path, known)
    for condition in staying[0].conditions:
        found = found | _known(condition, known).may_fail
    return found


def _may_hold(path: Path, known: dict[Condition, Known]) -> Truth:
    found: Truth = True
    for condition in path.conditions:
        found = found & _known(condition, known).may_hold
    return found


def _known(condition: Condition, known: dict[Condition, Known]) -> Known:
    found = known.get(condition)
    if found is None:
        found = known[condition] = _derived(condition, known)
    return found


def _derived(condition: Condition, known: dict[Condition, Known]) -> Known:
    if isinstance(condition, Always):
        return Known(True, False)
    if isinstance(condition, Not):
        inner = _known(condition.condition, known)
        return Known(inner.may_fail, inner.may_hold)
    if isinstance(condition, (Both, Either)):
        one, other = _known(condition.first, known), _known(condition.second, known)
        if isinstance(condition, Both):
            return Known(one.may_hold & other.may_hold, one.may_fail | other.may_fail)
        return Known(one.may_hold | other.may_hold, one.may_fail & other.may_fail)
    return OPEN


def paths_of(origin: State) -> list[Path] | None:
    """The ways out of a state; None if there are too many."""
    found: list[Path] = []
    for path in _ways(origin, origin, ()):
        found.append(path)
        if len(found) > _MOST_PATHS:
            return None
    return found


def _ways(origin: State, state: State, passed: tuple[Condition, ...]) -> Iterator[Path]:
    for edge in state.transitions:
        conditions = (*passed, edge.condition)
        if edge.action is Action.PROCEED:
            yield from _ways(origin, edge.target, conditions)
        else:
            stays = edge.action is Action.IGNORE and edge.target is origin
            yield Path(conditions, edge.action is Action.TAKE, stays)
