"""What an automaton means, event by event, in the plainest form: the specification of the
generated loops.

Events come in the order of their time. Before an event, time is advanced to it: partial matches
that have become too long time out, one moment after the other. So what is found does not depend on
how often anybody advances the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flinkpy.cep.automaton.after_match import Completion
from flinkpy.cep.automaton.partial_matches import (
    BEFORE,
    CELL,
    EVENT,
    FIRST,
    NAME,
    NO_RUNS,
    STATE,
    TIME,
    Cell,
    Found,
    Match,
    Run,
    Runs,
    match_of,
)
from flinkpy.cep.automaton.pattern_states import (
    END,
    Action,
    Automaton,
    State,
    StateKind,
    Transition,
)
from flinkpy.cep.event_conditions import Condition, Holds


class Context:
    """What a condition can ask for; one for a subtask, which is set for each partial match."""

    def __init__(self, processing_time: Callable[[], int]) -> None:
        self._processing_time = processing_time
        self.cell: Cell | None = None
        self.time = 0

    def get_events_for_pattern(self, name: str) -> list[object]:
        """The events taken under the name so far, in their order."""
        found = []
        cell = self.cell
        while cell is not None:
            if cell[NAME] == name:
                found.append(cell[EVENT])
            cell = cell[BEFORE]
        found.reverse()
        return found

    def timestamp(self) -> int:
        """The event's timestamp."""
        return self.time

    def current_processing_time(self) -> int:
        """The machine's time in milliseconds."""
        return self._processing_time()


class Interpreter:
    """Matches events with one automaton. It keeps nothing: a key's runs go in and come out. Partial
    matches that time out are given only with ``gives_timed_out``."""

    def __init__(
        self, automaton: Automaton, processing_time: Callable[[], int], gives_timed_out: bool = True
    ) -> None:
        self.automaton = automaton
        self.gives_timed_out = gives_timed_out
        self.context = Context(processing_time)
        self._states = automaton.by_name()
        self._completion = Completion(automaton.skip)
        self._holds: dict[Condition, Holds] = {each: each.bind() for each in automaton.conditions()}

    @property
    def within_of_quiet(self) -> int:
        """How long partial matches may be that end without giving anything, if no complete match
        waits for them; 0 if they give something, or if the time between two events counts."""
        automaton = self.automaton
        gives = self.gives_timed_out or any(
            state.kind is StateKind.PENDING for state in automaton.states
        )
        return 0 if gives or automaton.within_previous_ms else automaton.within_ms

    def advance(self, runs: Runs, time: int) -> tuple[Runs, list[Found]]:
        """Time has come to ``time``: gives what timed out, and the matches that are complete
        because of it."""
        found: list[Found] = []
        while True:
            due = self.next_timeout(runs)
            if due is None or due > time:
                return runs, found
            runs, now_found = self._time_out(runs, due)
            found += now_found

    def next_timeout(self, runs: Runs) -> int | None:
        """When the first of the partial matches times out."""
        if not self.automaton.is_bounded:
            return None
        return min((time for run in runs for time in self.timeouts(run)), default=None)

    def timeouts(self, run: Run) -> Iterator[int]:
        """The times at which this partial match is too long."""
        state, cell, first = run
        if state == END:
            return
        if self.automaton.within_ms > 0:
            yield first[TIME] + self.automaton.within_ms
        previous = self.automaton.within_previous_ms.get(state, 0)
        if previous > 0:
            yield cell[TIME] + previous

    def process(
        self, runs: Runs, event: object, time: int, number: int
    ) -> tuple[Runs, list[Found]]:
        """Gives an event to all partial matches, and begins a new one with it if it may."""
        context = self.context
        context.time = time
        kept: list[Run] = []
        complete: list[Run] = []
        for run in runs:
            if run[STATE] == END:
                complete.append(run)
                continue
            context.cell = run[CELL]
            here = self._states[run[STATE]]
            self._sort_out(self._steps(here, run, event, time, number), kept, complete)
        context.cell = None
        steps = self._steps(self.automaton.start, None, event, time, number)
        self._sort_out(steps, kept, complete)
        return self.given(kept, complete, time)

    def given(self, runs: list[Run], complete: list[Run], time: int) -> tuple[Runs, list[Found]]:
        """What is left once the skip strategy has been applied, and the matches that are given."""
        if not complete:
            return (Runs(runs) if runs else NO_RUNS), []
        runs, waiting, cells = self._completion.after(runs, complete)
        return Runs([*runs, *waiting]), [self.complete(cell, time) for cell in cells]

    def complete(self, last: Cell, time: int) -> Found:
        """A match that is complete, by its last cell."""
        return Found(match_of(last), time)

    def _time_out(self, runs: Runs, due: int) -> tuple[Runs, list[Found]]:
        kept: list[Run] = []
        complete: list[Run] = []
        timed_out: list[Match] = []
        for run in runs:
            if run[STATE] == END:
                complete.append(run)
            elif min(self.timeouts(run), default=due + 1) > due:
                kept.append(run)
            elif self._states[run[STATE]].kind is StateKind.PENDING:
                complete.append((END, run[CELL], run[FIRST]))
            elif self.gives_timed_out:
                timed_out.append(match_of(run[CELL]))
        left, found = self.given(kept, complete, due)
        return left, [*found, *(Found(match, due, timed_out=True) for match in timed_out)]

    def _steps(
        self, state: State, run: Run | None, event: object, time: int, number: int
    ) -> Iterator[Run]:
        """Where an event leads from a state; ``run`` is None at the start of the automaton."""
        for here, edge in self._edges(state, event):
            if edge.action is Action.TAKE:
                cell = (here.step, event, time, number, None if run is None else run[CELL])
                first = cell if run is None else run[FIRST]
                yield _name(edge.target), cell, first
                if self._leads_to_end(edge.target, event):
                    yield END, cell, first
            elif run is not None:
                yield _name(edge.target), run[CELL], run[FIRST]

    def _edges(self, state: State, event: object) -> list[tuple[State, Transition]]:
        """The transitions that take or ignore the event, through all PROCEEDs."""
        edges = []
        states = [state]
        while states:
            here = states.pop()
            for edge in here.transitions:
                if self._holds[edge.condition](event, self.context):
                    if edge.action is Action.PROCEED:
                        states.append(edge.target)
                    else:
                        edges.append((here, edge))
        return edges

    def _leads_to_end(self, state: State, event: object) -> bool:
        """Whether PROCEEDs lead to the final state: then the match is complete."""
        states = [state]
        while states:
            for edge in states.pop().transitions:
                if edge.action is Action.PROCEED and self._holds[edge.condition](
                    event, self.context
                ):
                    if edge.target.kind is StateKind.FINAL:
                        return True
                    states.append(edge.target)
        return False

    def _sort_out(self, steps: Iterator[Run], runs: list[Run], complete: list[Run]) -> None:
        """Keeps what became of one partial match, unless it came to a stop state. What is complete
        stays complete."""
        kept = []
        stopped = False
        for step in steps:
            if step[STATE] == END:
                complete.append(step)
            elif self._states[step[STATE]].kind is StateKind.STOP:
                stopped = True
            else:
                kept.append(step)
        if not stopped:
            runs.extend(kept)


def _name(state: State) -> str:
    """Under which name a partial match is in a state: there may be several final ones, as the
    compiler copies what is behind steps that may be left out."""
    return END if state.kind is StateKind.FINAL else state.name
