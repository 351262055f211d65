"""Which events of a batch of columns can matter to a pattern; no other event is made an object.

Conditions that are expressions are computed for whole batches. Of any other condition it is open
here whether it holds. From both follows which events may begin a match, and which may change a
partial match in a state: those that may do anything but be ignored there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from flinkpy.cep.automaton.partial_matches import STATE, Runs
from flinkpy.cep.automaton.pattern_states import Automaton
from flinkpy.cep.event_conditions import Condition
from flinkpy.cep.matching.effects import Known, may_begin, may_change, paths_of
from flinkpy.cep.matching.generated_loop import waiting_states

if TYPE_CHECKING:
    import numpy.typing as npt

_BITS = 62  # states with a bit of their own; all further ones share another


class Candidates:
    """Finds the candidates of one automaton. A partial match in a state has the state's bit."""

    def __init__(self, automaton: Automaton) -> None:
        waiting = list(dict.fromkeys(waiting_states(automaton)))
        self._bits = {state.name: 1 << min(at, _BITS) for at, state in enumerate(waiting)}
        self._start = paths_of(automaton.start)
        self._waiting = [(self._bits[state.name], paths_of(state)) for state in waiting]

    def wanted_by(self, runs: Runs) -> int:
        """The bits of the states that a key's partial matches are in."""
        bits, found = self._bits, 0
        for run in runs:
            found |= bits.get(run[STATE], 0)
        return found

    def among(
        self, events: int, truths: Mapping[Condition, npt.NDArray[np.bool_]]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """Which of so many events may begin a match, and the bits of the states in which each may
        change something. ``truths`` has the conditions that were computed."""
        known = {
            condition: Known(holds, np.logical_not(holds)) for condition, holds in truths.items()
        }
        begins = np.asarray(may_begin(self._start, known), np.bool_)
        matters = np.zeros(events, np.int64)
        for bit, paths in self._waiting:
            matters |= np.multiply(may_change(paths, known), bit, dtype=np.int64)
        return np.broadcast_to(begins, events), matters
