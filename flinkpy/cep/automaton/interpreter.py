"""What an automaton means, event by event, in the plainest form: the specification of the
generated loops.

Events come in the order of their time. Before an event, time is advanced to it: partial matches
that have become too long time out, one moment after the other. So what is found does not depend on
how often anybody advances the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from flinkpy.cep.automaton.after_match import Completion
from flinkpy.cep.automaton.partial_matches import (
    Cell,
    EventId,
    Found,
    Match,
    Run,
    RunsOfKey,
    cells_of,
    match_of,
)
from flinkpy.cep.automaton.pattern_states import Action, Automaton, State, StateKind, Transition
from flinkpy.cep.event_conditions import Condition, Holds


class Context:
    """What a condition can ask for; one for a subtask, which is set for each partial match."""

    def __init__(self, processing_time: Callable[[], int]) -> None:
        self._processing_time = processing_time
        self.cell: Cell | None = None
        self.time = 0

    def get_events_for_pattern(self, name: str) -> list[object]:
        """The events taken under the name so far, in their order."""
        return [each.event for each in cells_of(self.cell) if each.name == name][::-1]

    def timestamp(self) -> int:
        """The event's timestamp."""
        return self.time

    def current_processing_time(self) -> int:
        """The machine's time in milliseconds."""
        return self._processing_time()


class Interpreter:
    """Matches the events of one key after the other with one automaton."""

    def __init__(self, automaton: Automaton, processing_time: Callable[[], int]) -> None:
        self.automaton = automaton
        self.context = Context(processing_time)
        self._completion = Completion(automaton.skip)
        self._holds: dict[Condition, Holds] = {each: each.bind() for each in automaton.conditions()}

    def advance(self, key: RunsOfKey, time: int) -> Iterator[Found]:
        """Time has come to ``time``: gives what timed out, and the matches that are complete
        because of it."""
        while True:
            due = self.next_timeout(key)
            if due is None or due > time:
                return
            yield from self._time_out(key, due)

    def next_timeout(self, key: RunsOfKey) -> int | None:
        """When the first of the partial matches times out."""
        if not self.automaton.is_bounded:
            return None
        return min((time for run in key.runs for time in self.timeouts(run)), default=None)

    def timeouts(self, run: Run) -> Iterator[int]:
        """The times at which this partial match is too long."""
        if self.automaton.within_ms > 0:
            yield run.start[0] + self.automaton.within_ms
        previous = self.automaton.within_previous_ms.get(run.state.name, 0)
        if previous > 0:
            yield run.previous_ms + previous

    def process(self, key: RunsOfKey, event: object, event_id: EventId) -> Iterator[Found]:
        """Gives an event to all partial matches, and begins a new one with it if it may."""
        runs: list[Run] = []
        complete: list[Run] = []
        for run in key.runs:
            self.context.cell = run.cell
            _sort_out(self._steps(run.state, run, event, event_id), runs, complete)
        self.context.cell = None
        _sort_out(self._steps(self.automaton.start, None, event, event_id), runs, complete)
        key.runs = runs
        for cell in self._completion.after(key, complete):
            yield Found(match_of(cell), event_id[0])

    def _time_out(self, key: RunsOfKey, due: int) -> Iterator[Found]:
        runs: list[Run] = []
        complete: list[Run] = []
        timed_out: list[Match] = []
        for run in key.runs:
            if min(self.timeouts(run), default=due + 1) > due:
                runs.append(run)
            elif run.state.kind is StateKind.PENDING:
                complete.append(run)
            else:
                timed_out.append(match_of(run.cell))
        key.runs = runs
        for cell in self._completion.after(key, complete):
            yield Found(match_of(cell), due)
        for match in timed_out:
            yield Found(match, due, timed_out=True)

    def _steps(
        self, state: State, run: Run | None, event: object, event_id: EventId
    ) -> Iterator[Run]:
        """Where an event leads from a state; ``run`` is None at the start of the automaton."""
        self.context.time = event_id[0]
        for here, edge in self._edges(state, event):
            if edge.action is Action.TAKE:
                cell = Cell(here.step, event, event_id, None if run is None else run.cell)
                start = event_id if run is None else run.start
                yield Run(edge.target, cell, start, event_id[0])
                final = self._final_behind(edge.target, event)
                if final is not None:
                    yield Run(final, cell, start, event_id[0])
            elif run is not None:
                yield Run(edge.target, run.cell, run.start, run.previous_ms)

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

    def _final_behind(self, state: State, event: object) -> State | None:
        """The final state, if PROCEEDs lead to it: then the match is complete."""
        states = [state]
        while states:
            for edge in states.pop().transitions:
                if edge.action is Action.PROCEED and self._holds[edge.condition](
                    event, self.context
                ):
                    if edge.target.kind is StateKind.FINAL:
                        return edge.target
                    states.append(edge.target)
        return None


def _sort_out(steps: Iterator[Run], runs: list[Run], complete: list[Run]) -> None:
    """Keeps what became of one partial match, unless it came to a stop state. What is complete
    stays complete."""
    kept = []
    stopped = False
    for step in steps:
        if step.state.kind is StateKind.FINAL:
            complete.append(step)
        elif step.state.kind is StateKind.STOP:
            stopped = True
        else:
            kept.append(step)
    if not stopped:
        runs.extend(kept)
