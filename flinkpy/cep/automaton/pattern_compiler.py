"""Compiles a pattern to its automaton, from the end to the beginning, as Flink's NFACompiler does.

What a pattern means is defined by these states and transitions, also where that may surprise, such
as that ``within`` of ``times`` does not bound the time before the last event. So change nothing
here that a comparison with Flink does not show (``tests/cep/test_against_flink.py``).

A step that is taken several times is several states. A state that may be left has a PROCEED to
what follows; a second state without that PROCEED is where an ignored event leads, so that a partial
match leaves the step once only."""

from __future__ import annotations

from dataclasses import dataclass

from flinkpy.cep.automaton.pattern_states import (
    END,
    Action,
    Automaton,
    State,
    StateKind,
    Transition,
)
from flinkpy.cep.event_conditions import ALWAYS, Both, Condition, Not, both
from flinkpy.cep.pattern import (
    Contiguity,
    MalformedPatternError,
    Pattern,
    Repetition,
    Step,
    malformed,
)


def compiled(pattern: Pattern) -> Automaton:
    """The automaton of a pattern. Raises MalformedPatternError, with the program's line."""
    _check_skip(pattern)
    try:
        automaton = _Compiler(pattern).automaton()
    except RecursionError:
        raise _in_circles(pattern.names()) from None
    _check_times(pattern, automaton)
    _check_circles(automaton)
    return automaton


@dataclass(frozen=True)
class _Place:
    """A step, and where it stands: in which steps, in which group, and what follows it."""

    steps: tuple[Step, ...]
    at: int
    group: Step | None = None
    following: Step | None = None

    @property
    def step(self) -> Step:
        return self.steps[self.at]

    @property
    def is_head_of_group(self) -> bool:
        return self.group is not None and self.at == 0

    def before(self) -> _Place:
        return _Place(self.steps, self.at - 1, self.group, self.step)


def _last(pattern: Pattern, around: _Place | None = None) -> _Place:
    """The last step of a pattern; what follows a group follows its last step."""
    at = len(pattern.steps) - 1
    if around is None:
        return _Place(pattern.steps, at)
    return _Place(pattern.steps, at, around.step, around.following)


class _Compiler:
    """Makes the states of one pattern."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.states: dict[str, State] = {}
        self.stops: dict[str, State] = {}
        self.within_ms: int | None = pattern.steps[-1].within_ms
        self.within_previous_ms: dict[str, int] = {}
        self.later_rounds: set[int] = set()  # ids of groups whose later rounds are being made
        self.before_greedy: dict[str, State] = {}  # copies of states, from before they were greedy

    def automaton(self) -> Automaton:
        end = self._state(END, StateKind.FINAL)
        sink, place = self._middle(end, _last(self.pattern))
        start = self._converted(place, sink)
        if self.within_ms and any(
            time > self.within_ms for time in self.within_previous_ms.values()
        ):
            raise malformed(
                "within(..., PREVIOUS_AND_CURRENT) and within= of a quantifier cannot be longer "
                "than within(...) of the whole match"
            )
        return Automaton(
            tuple(self.states.values()),
            start,
            self.pattern.skip,
            self.within_ms or 0,
            self.within_previous_ms,
            tuple(self.pattern.names()),
        )

    def _middle(self, sink: State, place: _Place) -> tuple[State, _Place]:
        """All steps from ``place`` back to the second; gives what the first leads to, and the
        first."""
        while place.at > 0:
            contiguity = place.step.contiguity
            if contiguity is Contiguity.NOT_FOLLOW:
                # in the middle it becomes transitions of the states around it
                if sink.kind is StateKind.FINAL and (
                    place.step.within_previous_ms is not None or self.within_ms
                ):
                    sink = self._not_followed_at_end(place)
            elif contiguity is Contiguity.NOT_NEXT:
                sink = self._not_next(place, sink)
            else:
                sink = self._converted(place, sink)
            place = place.before()
            within = place.step.within_ms
            if within is not None and (self.within_ms is None or within < self.within_ms):
                self.within_ms = within
        return sink, place

    def _not_followed_at_end(self, place: _Place) -> State:
        state = self._state_of(place, StateKind.PENDING)
        condition = _take_condition(place)
        state.add(Action.PROCEED, self._stop(condition, place.step.name), condition)
        state.add(Action.IGNORE, state, Not(condition))
        return state

    def _not_next(self, place: _Place, sink: State) -> State:
        state = self._state_of(place)
        condition = _take_condition(place)
        stop = self._stop(condition, place.step.name)
        # the event itself completes the match; a PROCEED would do so before it came
        action = Action.IGNORE if sink.kind is StateKind.FINAL else Action.PROCEED
        state.add(action, sink, Not(condition))
        state.add(Action.PROCEED, stop, condition)
        return state

    # -- steps -------------------------------------------------------------------------------------

    def _converted(self, place: _Place, sink: State) -> State:
        """The states of a step that lead to ``sink``; gives the first of them."""
        step = place.step
        repetition = step.quantifier.repetition
        if repetition is Repetition.LOOPING:
            self._in_later_rounds(step, True)
            looping = self._looping(place, self._without_nots(place, sink))
            self._in_later_rounds(step, False)
            first = self._times(place, looping, sink)
        elif repetition is Repetition.TIMES:
            first = self._times(place, sink, sink)
        else:
            first = self._single(
                place,
                sink,
                sink,
                _take_condition(place),
                self._ignore_condition(place),
                step.quantifier.optional,
            )
        self._add_stops(place, first)
        return first

    def _single(
        self,
        place: _Place,
        sink: State,
        proceed: State,
        take: Condition,
        ignore: Condition | None,
        optional: bool,
    ) -> State:
        """The state that takes one event of the step, or the states of one round of a group."""
        step = place.step
        if step.group is not None:
            return self._round_of_group(place, step.group, sink, proceed if optional else None)
        state = self._state_of(place)
        after = self._without_nots(place, sink)
        state.add(Action.TAKE, after, take)
        if optional:
            always = _true(place)
            until = step.until if step.quantifier.greedy else None
            if until is None:
                state.add(Action.PROCEED, proceed, always)
            else:
                state.add(Action.PROCEED, self._before_greedy(proceed), Both(always, until))
                state.add(Action.PROCEED, proceed, Both(always, Not(until)))
        if ignore is not None:
            ignoring = state
            if optional or self._heads_optional_group(place):
                ignoring = self._state(step.name)
                ignoring.add(Action.TAKE, after, take)
                ignoring.add(Action.IGNORE, ignoring, ignore)
                self._add_stops(place, ignoring)
            state.add(Action.IGNORE, ignoring, ignore)
        return state

    def _times(self, place: _Place, sink: State, proceed: State) -> State:
        """A state for each time that the step is taken."""
        step, quantifier = place.step, place.step.quantifier
        self._in_later_rounds(step, True)
        ignore = _with_until(_inner_ignore_condition(place), step.until)
        take = _with_until(_take_condition(place), step.until) or ALWAYS
        if quantifier.greedy and quantifier.low != quantifier.high:
            _only_without(sink, take)
        last = sink
        for _ in range(quantifier.low, quantifier.high):
            last = self._single(place, last, proceed, take, ignore, True)
            self._add_stop_of_following(place, last)
        for _ in range(quantifier.low - 1):
            last = self._single(place, last, proceed, take, ignore, False)
            self._add_stop_of_following(place, last)
        self._in_later_rounds(step, False)
        first_ignore = self._ignore_condition(place)
        return self._single(place, last, proceed, take, first_ignore, quantifier.optional)

    def _looping(self, place: _Place, sink: State) -> State:
        """The state that takes any number of events, and goes on to ``sink``."""
        step = place.step
        if step.group is not None:
            return self._looping_group(place, step.group, sink)
        ignore = _with_until(_inner_ignore_condition(place), step.until)
        take = _with_until(_take_condition(place), step.until) or ALWAYS
        always = _true(place)
        state = self._state_of(place)
        if step.quantifier.greedy:
            if step.until is not None:
                copy = self._copy(sink)
                self.before_greedy[sink.name] = copy
                state.add(Action.PROCEED, copy, Both(always, step.until))
                state.add(Action.PROCEED, sink, Both(always, Not(step.until)))
            else:
                state.add(Action.PROCEED, sink, always)
            _only_without(sink, _take_condition(place))
        else:
            state.add(Action.PROCEED, sink, always)
        state.add(Action.TAKE, state, take)
        self._add_stop_of_following(place, state)
        if ignore is not None:
            ignoring = self._state(step.name)
            ignoring.add(Action.TAKE, state, take)
            ignoring.add(Action.IGNORE, ignoring, ignore)
            state.add(Action.IGNORE, ignoring, ignore)
            self._add_stop_of_following(place, ignoring)
        return state

    def _round_of_group(
        self, place: _Place, group: Pattern, sink: State, proceed: State | None
    ) -> State:
        """The states of a group, taken once; with ``proceed`` it may be left out."""
        last, head = self._middle(sink, _last(group, place))
        first = self._converted(head, last)
        if proceed is not None:
            first.add(Action.PROCEED, proceed, _true(place))
        return first

    def _looping_group(self, place: _Place, group: Pattern, sink: State) -> State:
        """The states of a group that is taken any number of times."""
        back = self._state_of(place)
        last, head = self._middle(back, _last(group, place))
        first = self._converted(head, last)
        first.add(Action.PROCEED, sink, _true(place))
        back.add(Action.PROCEED, first, _true(place))
        return first

    def _in_later_rounds(self, step: Step, later: bool) -> None:
        if step.group is not None:
            (self.later_rounds.add if later else self.later_rounds.discard)(id(step))

    def _heads_optional_group(self, place: _Place) -> bool:
        group = place.group
        return (
            place.is_head_of_group
            and group is not None
            and id(group) not in self.later_rounds
            and group.quantifier.optional
        )

    def _ignore_condition(self, place: _Place) -> Condition | None:
        """Which events may come before the step's first one; None: none."""
        contiguity = place.step.contiguity
        if place.is_head_of_group and place.group is not None:
            later = id(place.group) in self.later_rounds
            contiguity = place.group.quantifier.inner if later else place.group.contiguity
        return _ignored(place, contiguity)

    # -- what must not come ------------------------------------------------------------------------

    def _add_stops(self, place: _Place, state: State) -> None:
        """An event of a ``not_followed_by`` before the step stops the match."""
        for condition, name in _nots_before(place):
            state.add(Action.PROCEED, self._stop(condition, name), condition)

    def _add_stop_of_following(self, place: _Place, state: State) -> None:
        """So does one of a ``not_followed_by`` directly behind a step that is taken many times."""
        following = place.following
        if following is not None and following.contiguity is Contiguity.NOT_FOLLOW:
            condition = _take_condition(_Place((following,), 0, place.group))
            state.add(Action.PROCEED, self._stop(condition, following.name), condition)

    def _stop(self, condition: Condition, name: str) -> State:
        stop = self.stops.get(name)
        if stop is None:
            stop = self.stops[name] = self._state(name, StateKind.STOP)
            stop.add(Action.TAKE, stop, condition)
        return stop

    def _without_nots(self, place: _Place, sink: State) -> State:
        """Where an event of an optional step leads: there the ``not_followed_by`` before the step
        counts no more. ``a, not b, c?, d``: ``a c b d`` is a match, ``a b d`` is none."""
        nots = {name for _, name in _nots_before(place)}
        if not nots or not place.step.quantifier.optional:
            return sink
        copy = self._state(sink.step, sink.kind, sink.name)
        for each in sink.transitions:
            if each.action is not Action.PROCEED:
                copy.add(each.action, copy if each.target is sink else each.target, each.condition)
            elif each.target.kind is not StateKind.STOP:
                copy.add(each.action, self._without_nots(place, each.target), each.condition)
            elif each.target.name not in nots:
                copy.add(each.action, each.target, each.condition)
        return copy

    # -- states ------------------------------------------------------------------------------------

    def _state_of(self, place: _Place, kind: StateKind = StateKind.NORMAL) -> State:
        """A state that takes events of the step, in its time after the event before."""
        step = place.step
        state = self._state(step.name, kind)
        if step.quantifier.repetition is Repetition.ONCE:
            within = step.within_previous_ms
        else:  # all states but the one that was made first, as in Flink
            within = step.quantifier.within_ms if state.name != step.name else None
        if within is not None:
            self.within_previous_ms[state.name] = within
        return state

    def _state(
        self, step: str, kind: StateKind = StateKind.NORMAL, name: str | None = None
    ) -> State:
        base = name or step
        unique, number = base, 0
        while unique in self.states:
            unique = f"{base}:{number}"
            number += 1
        state = self.states[unique] = State(unique, step, kind)
        return state

    def _copy(self, state: State) -> State:
        copy = self._state(state.step, state.kind)
        for each in state.transitions:
            copy.add(each.action, copy if each.target is state else each.target, each.condition)
        return copy

    def _before_greedy(self, state: State) -> State:
        found = self.before_greedy.get(state.name)
        if found is None:  # Flink fails here once an event comes that ends the loop
            raise malformed("greedy() with until(...) is not possible here; leave one of them out")
        return found


# -- conditions ------------------------------------------------------------------------------------


def _group_until(place: _Place) -> Condition | None:
    return None if place.group is None else place.group.until


def _with_until(condition: Condition | None, until: Condition | None) -> Condition | None:
    """The condition, unless the loop was ended."""
    if condition is None or until is None:
        return condition
    return both(Not(until), condition)


def _take_condition(place: _Place) -> Condition:
    return _with_until(place.step.condition, _group_until(place)) or ALWAYS


def _true(place: _Place) -> Condition:
    return _with_until(ALWAYS, _group_until(place)) or ALWAYS


def _inner_ignore_condition(place: _Place) -> Condition | None:
    """Which events may come between two events of the step; None: none."""
    inner = place.step.quantifier.inner
    if place.is_head_of_group and place.group is not None:
        inner = place.group.quantifier.inner
    return _ignored(place, inner)


def _ignored(place: _Place, contiguity: Contiguity) -> Condition | None:
    if contiguity is Contiguity.SKIP_TILL_NEXT:
        return _with_until(Not(place.step.condition), _group_until(place))
    if contiguity is Contiguity.SKIP_TILL_ANY:
        return _true(place)
    return None


def _nots_before(place: _Place) -> list[tuple[Condition, str]]:
    """The ``not_followed_by`` before the step, also those before optional steps before it."""
    found = []
    while place.at > 0:
        place = _Place(place.steps, place.at - 1, place.group)
        step = place.step
        if step.contiguity is Contiguity.NOT_FOLLOW:
            found.append((_take_condition(place), step.name))
        elif not step.quantifier.optional:
            break
    return found


def _only_without(state: State, take: Condition) -> None:
    """Makes a step before the state greedy: nothing leaves it with an event that the step takes."""
    for transition in state.transitions:
        transition.condition = both(transition.condition, Not(take))


# -- what is refused -------------------------------------------------------------------------------


def _check_skip(pattern: Pattern) -> None:
    name = pattern.skip.pattern_name
    known = [step.name for step in pattern.steps if step.group is None]
    if name is not None and name not in known:
        raise malformed(
            f"{pattern.skip.kind.value}: the pattern has no step {name!r} outside of groups; "
            f"it has {', '.join(map(repr, known)) or 'none'}"
        )


def _check_times(pattern: Pattern, automaton: Automaton) -> None:
    last = pattern.steps[-1]
    if last.contiguity is Contiguity.NOT_FOLLOW and not (
        automaton.within_ms or automaton.within_previous_ms.get(last.name)
    ):
        raise malformed(
            "not_followed_by at the end of a pattern needs within(...): without it nobody knows "
            "when the match is complete"
        )


def _check_circles(automaton: Automaton) -> None:
    """Refuses a group in a loop that may be empty: Flink accepts it and then runs in circles."""
    done: set[State] = set()
    for state in automaton.states:
        if state not in done:
            _walk(state, [], done)


def _walk(state: State, path: list[State], done: set[State]) -> None:
    if state in path:
        raise _in_circles(sorted({each.step for each in path[path.index(state) :]}))
    path.append(state)
    for transition in _proceeding(state):
        if transition.target not in done:
            _walk(transition.target, path, done)
    path.pop()
    done.add(state)


def _in_circles(names: list[str]) -> MalformedPatternError:
    return malformed(
        f"a group in a loop may be empty (steps {', '.join(map(repr, names))}): it could be "
        "repeated for ever without an event; one of its steps must not be optional"
    )


def _proceeding(state: State) -> list[Transition]:
    return [each for each in state.transitions if each.action is Action.PROCEED]
