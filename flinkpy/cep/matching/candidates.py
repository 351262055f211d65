"""Which events of a batch of columns can matter to a pattern; no other event is made an object.

Conditions that are expressions are computed for whole batches. Of any other condition it is open
here whether it holds. From both follows which events may begin a match, and which may change a
partial match in a state: those that may do anything but be ignored there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from flinkpy.cep.automaton.partial_matches import Runs
from flinkpy.cep.automaton.pattern_states import Action, Automaton, State
from flinkpy.cep.event_conditions import Always, Both, Condition, Either, Not
from flinkpy.cep.matching.generated_loop import waiting_states

if TYPE_CHECKING:
    import numpy.typing as npt

# one truth for all events, or one for each
Truths: TypeAlias = "bool | npt.NDArray[np.bool_]"

_BITS = 62  # states with a bit of their own; all further ones share another
_MOST_PATHS = 64  # out of a state; with more of them every event matters there


class Known(NamedTuple):
    """What is known of a condition, for each event of a batch."""

    may_hold: Truths
    may_fail: Truths


OPEN = Known(True, True)


class Path(NamedTuple):
    """A way out of a state, through PROCEEDs: the conditions on it, whether it takes the event, and
    whether all it does is to ignore it."""

    conditions: tuple[Condition, ...]
    takes: bool
    stays: bool


class Candidates:
    """Finds the candidates of one automaton. A partial match in a state has the state's bit."""

    def __init__(self, automaton: Automaton) -> None:
        waiting = list(dict.fromkeys(waiting_states(automaton)))
        self._bits = {state.name: 1 << min(at, _BITS) for at, state in enumerate(waiting)}
        self._start = _paths(automaton.start)
        self._waiting = [(self._bits[state.name], _paths(state)) for state in waiting]

    def wanted_by(self, runs: Runs) -> int:
        """The bits of the states that a key's partial matches are in."""
        bits, found = self._bits, 0
        for run in runs:
            found |= bits.get(run[0], 0)
        return found

    def among(
        self, events: int, truths: Mapping[Condition, npt.NDArray[np.bool_]]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Which of so many events may begin a match, and the bits of the states in which each may
        change something. ``truths`` has the conditions that were computed."""
        known = {
            condition: Known(holds, np.logical_not(holds)) for condition, holds in truths.items()
        }
        begins: Truths = self._start is None
        for path in self._start or ():
            if path.takes:
                begins = begins | _may_hold(path, known)
        matters = np.zeros(events, np.int64)
        for bit, paths in self._waiting:
            matters |= np.multiply(_may_change(paths, known), bit, dtype=np.int64)
        return np.broadcast_to(np.asarray(begins, np.bool_), events), matters


def _may_change(paths: list[Path] | None, known: dict[Condition, Known]) -> Truths:
    """Which events may do anything else than leave a partial match as it is."""
    staying = [path for path in paths or () if path.stays]
    if paths is None or len(staying) != 1:
        return True
    found: Truths = False
    for path in paths:
        if not path.stays:
            found = found | _may_hold(path, known)
    for condition in staying[0].conditions:
        found = found | _known(condition, known).may_fail
    return found


def _may_hold(path: Path, known: dict[Condition, Known]) -> Truths:
    found: Truths = True
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


def _paths(origin: State) -> list[Path] | None:
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
