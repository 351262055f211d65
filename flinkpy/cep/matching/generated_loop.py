"""The loop over events, generated for one pattern.

It means what the interpreter means, and does less: PROCEEDs are expanded away, conditions are
inlined and asked at most once per event, and an event that begins nothing, of a key without partial
matches, costs one look-up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from operator import is_
from typing import Any

from flinkpy.cep.automaton.interpreter import Interpreter
from flinkpy.cep.automaton.partial_matches import NO_RUNS, Found, Runs, match_of
from flinkpy.cep.automaton.pattern_states import END, Action, Automaton, State, StateKind
from flinkpy.cep.event_conditions import (
    Always,
    Both,
    Condition,
    Either,
    IsInstance,
    Not,
    OfColumns,
    OfEvent,
    OfEventAndContext,
    TwoConditions,
)
from flinkpy.cep.skip import SkipKind
from flinkpy.core.codegen.generated import compile_function
from flinkpy.core.codegen.idle_results import TRUTHS, look_at_truth
from flinkpy.core.codegen.inlining import gives_a_truth, inlined
from flinkpy.core.elements import MIN_TIMESTAMP

RESET = "(reset)"  # stands where conditions that were asked are forgotten

LONGEST = 3000  # lines; a pattern that needs more is interpreted
_LONGEST_CHAIN = 8  # events before that are read from cells; of a longer match they are asked for

TOGETHER = 1 << 6  # matches that are given at once, about; more of them leave the cache

Take = Callable[..., Iterator[list[Found]]]


class GeneratedLoop:
    """``take(matcher, keys, times, events, *truths)`` of an automaton; ``take`` is None if its
    source would be too long. ``truths``: for each of ``expressions_of(automaton)``, whether it
    holds for each event, or None where it has to be asked."""

    def __init__(self, interpreter: Interpreter) -> None:
        self._automaton: Automaton = interpreter.automaton
        self._within_of_quiet = interpreter.within_of_quiet
        self._waiting = set(waiting_states(self._automaton))
        self._leaves: dict[Condition, str] = {}  # the variables that hold what conditions said
        self._called: dict[Condition, str] = {}  # the names of what conditions call
        self._uses: Counter[Condition] = Counter()
        self._counted: Counter[Condition] = Counter()
        self._names: dict[str, Any] = {
            "TRUTHS": TRUTHS,
            "look_at_truth": look_at_truth,
            "new": tuple.__new__,
            "is_": is_,
            "MIN_TIMESTAMP": MIN_TIMESTAMP,
            "Runs": Runs,
            "NO_RUNS": NO_RUNS,
            "advance": interpreter.advance,
            "Found": Found,
            "match_of": match_of,
            "given": interpreter.given,
            "context": interpreter.context,
        }
        # functions that are not called, and whether each takes the context
        self.inlined: dict[Callable[..., Any], bool] = {}
        self._chains = taken_before(self._automaton)
        self._chain: tuple[str, ...] | None = None  # of the state whose lines are made
        self._expressions = {
            each: f"e{at}" for at, each in enumerate(expressions_of(self._automaton))
        }
        self._lines()  # counts how often each condition stands in the loop
        self._counted, self._uses, self._leaves = self._uses, Counter(), {}
        lines = self._lines()
        self.take: Take | None = None
        if len(lines) <= LONGEST:
            self.take = compile_function("take", "\n".join(lines), self._names)

    @property
    def expressions(self) -> int:
        """How many of the conditions are expressions."""
        return len(self._expressions)

    # -- the loop ----------------------------------------------------------------------------------

    def _lines(self) -> list[str]:
        automaton = self._automaton
        steps = self._steps_of_runs()
        start = self._expanded(automaton.start, begins=True)
        begins = self._begins(automaton.start)
        asks = any("context" in line for line in (begins, *steps, *start))
        forget = _forget(self._leaves.values())
        body = [
            "before = runs = get(key)",
            forget,
            "if before is None:",
            *([] if begins == "True" else [f"    if not {begins}:", "        continue"]),
            "    runs = NO_RUNS",
            *self._advancing(),
            "kept = []",
            *(["context.time = time"] if asks else []),
            "for run in runs:",
            "    state, cell, first = run",
            *_indented(steps, 1),
            *(["context.cell = cell = None", RESET] if asks else ["cell = None"]),
            *start,
            "number += 1",
            *self._giving(),
            *self._keeping(),
        ]
        reset = self._reset_iterative()
        truths = "".join(f", {name}" for name in self._expressions.values())
        return [
            "def take(matcher, keys, times, events, *truths):",
            "    kept_of, number, last = matcher.runs, matcher.number, {}",
            "    calendar, bucket, until = matcher.calendar, {}, MIN_TIMESTAMP",
            "    get, most, grown, complete = kept_of.get, matcher.most_of_a_key, 0, []",
            "    given_now = []",
            "    try:",
            f"        for key, time, event{truths} in zip(keys, times, events, *truths):",
            *(line.replace(RESET, reset) for line in _indented(body, 3)),
            "    except Exception:",
            "        if given_now:",  # what was found before a condition raised
            "            yield given_now",
            "        raise",
            "    if given_now:",
            "        yield given_now",
            "    matcher.number = number",
            "    matcher.partial_matches += grown",
        ]

    def _giving(self) -> list[str]:
        """What becomes of complete matches: mostly there is one, and nothing is before it."""
        drops = _DROPS.get(self._automaton.skip.kind)
        general = "kept, found = given(kept, complete, time)"
        giving = [
            f"    if len(given_now) >= {TOGETHER}:",
            "        yield given_now",
            "        given_now = []",
            "    complete = []",
        ]
        if drops is None:
            return ["if complete:", f"    {general}", "    given_now += found", *giving]
        dropping = f"kept = [run for run in kept if run[2][3] > {drops}]"
        if self._automaton.skip.kind is SkipKind.PAST_LAST_EVENT:
            # nothing begins behind the event that has just been taken
            dropping = f"kept = [] if {drops} == number - 1 else {dropping.removeprefix('kept = ')}"
        return [
            "if complete:",
            "    _, taken, first = complete[0]",
            "    if len(complete) == 1 and (not kept or kept[0][2][3] >= first[3]):",
            *([f"        {dropping}"] if drops else []),
            f"        given_now.append(new(Found, ({self._match()}, time, False)))",
            "    else:",
            f"        {general}",
            "        given_now += found",
            *giving,
        ]

    def _match(self) -> str:
        """The match whose last cell is ``taken``: read without a loop, if all have one shape."""
        last = [
            (edge.action, self._chains.get(edge.target))
            for state in self._automaton.states
            for edge in state.transitions
            if edge.target.kind is StateKind.FINAL
        ]
        chain = last[0][1] if len(last) == 1 and last[0][0] is Action.TAKE else None
        if chain is None:
            return "match_of(taken)"
        by_name: dict[str, list[str]] = {}
        for at, name in reversed(list(enumerate(chain))):
            by_name.setdefault(name, []).append(f"taken{'[4]' * at}[1]")
        shown = [f"{name!r}: [{', '.join(events)}]" for name, events in by_name.items()]
        return f"{{{', '.join(shown)}}}"

    def _keeping(self) -> list[str]:
        """``matcher.put(key, before, kept, time)``, without a call in the usual cases."""
        if self._automaton.within_previous_ms:
            return ["matcher.put(key, before, kept, time)"]
        within = self._automaton.within_ms
        entering = [
            f"        if time + {within} > until:",
            f"            bucket, until = calendar.bucket(time + {within})",
            "        bucket[key] = None",
        ]
        return [
            "if kept:",
            "    if before is None:",
            "        grown += len(kept)",
            *(entering if within else []),
            "        kept_of[key] = new(Runs, kept)",
            "    elif kept[-1] is not before[-1] or not (",
            "        len(kept) == len(before) and all(map(is_, kept, before))",
            "    ):",
            "        grown += len(kept) - len(before)",
            "        kept_of[key] = new(Runs, kept)",
            "    if len(kept) > most:",
            "        most = matcher.check(key, kept_of[key])",
            "elif before is not None:",
            "    grown -= len(before)",
            "    del kept_of[key]",
        ]

    def _advancing(self) -> list[str]:
        automaton = self._automaton
        if not automaton.is_bounded:
            return []
        if automaton.within_previous_ms:
            due = "last.get(key) != time"
        else:
            due = f"runs[0][2][2] + {automaton.within_ms} <= time"
        lines = [
            "    runs, found = advance(runs, time)",
            "    if runs is not before:",
            "        matcher.put(key, before, runs, time)",
            "        before = runs or None",
            "        given_now += found",
        ]
        within = self._within_of_quiet
        if within:  # they are only left out, if no complete match waits for one of them
            lines = [
                f"    if runs[-1][0] != {END!r}:",
                f"        runs = new(Runs, [run for run in runs if run[2][2] + {within} > time])",
                "        grown -= len(before) - len(runs)",
                "        if runs:",
                "            kept_of[key] = before = runs",
                "        else:",
                "            before = None",
                "            del kept_of[key]",
                "    else:",
                *_indented(lines, 1),
            ]
        lines = [f"elif {due}:", *lines]
        return [*lines, "last[key] = time"] if automaton.within_previous_ms else lines

    def _steps_of_runs(self) -> list[str]:
        lines: list[str] = []
        for state in self._automaton.states:
            if state in self._waiting:
                lines.append(f"{'elif' if lines else 'if'} state == {state.name!r}:")
                self._chain = self._chains.get(state)  # some are never reached
                steps = self._expanded(state, begins=False) or ["pass"]
                if any("context" in line for line in steps):
                    lines.append("    context.cell = cell")
                if any(each.asks_for_context for each in _reached(state)):
                    lines.append(f"    {RESET}")
                lines += _indented(steps, 1)
        self._chain = None
        if self._automaton.skip.skips:
            return [*lines, *(["else:"] if lines else ["if True:"]), "    complete.append(run)"]
        return lines or ["pass"]

    def _reset_iterative(self) -> str:
        """Conditions that look at the partial match are asked again for each."""
        return _forget(name for each, name in self._leaves.items() if each.asks_for_context)

    # -- one state ---------------------------------------------------------------------------------

    def _expanded(self, state: State, begins: bool) -> list[str]:
        """What becomes of an event in a state."""
        stops = any(each.kind is StateKind.STOP for each in _proceeds(state))
        out = "now" if stops else "kept"
        lines = self._edges(state, state, begins, out)
        if not stops:
            return lines
        return ["now, stopped = [], False", *lines, "if not stopped:", "    kept += now"]

    def _edges(self, origin: State, state: State, begins: bool, out: str) -> list[str]:
        lines: list[str] = []
        for edge in state.transitions:
            if edge.action is Action.PROCEED:
                continue
            if edge.action is Action.TAKE:
                made = self._taken(state, edge.target, begins, out)
            elif begins:
                continue
            elif edge.target.kind is StateKind.FINAL:
                made = [f"complete.append(({END!r}, cell, first))"]
            elif edge.target is origin:
                made = [f"{out}.append(run)"]
            else:
                name = edge.target.name
                made = [f"{out}.append(({name!r}, cell, first))"]
            lines += self._if(edge.condition, made)
        for edge in reversed(state.transitions):  # the interpreter has them on a stack
            if edge.action is Action.PROCEED:
                behind = self._edges(origin, edge.target, begins, out)
                if behind:
                    lines += self._if(edge.condition, behind)
        return lines

    def _taken(self, state: State, target: State, begins: bool, out: str) -> list[str]:
        if target.kind is StateKind.STOP:
            return ["stopped = True"]
        first = "taken" if begins else "first"
        lines = [f"taken = ({state.step!r}, event, time, number, cell)"]
        done = f"complete.append(({END!r}, taken, {first}))"
        if target.kind is StateKind.FINAL:
            return [*lines, done]
        lines.append(f"{out}.append(({target.name!r}, taken, {first}))")
        ends = self._leads_to_end(target)
        if ends is not None:
            lines += [done] if ends == "True" else [f"if {ends}:", f"    {done}"]
        return lines

    def _leads_to_end(self, state: State) -> str | None:
        ways = []
        for edge in state.transitions:
            if edge.action is Action.PROCEED:
                behind = (
                    "True"
                    if edge.target.kind is StateKind.FINAL
                    else self._leads_to_end(edge.target)
                )
                if behind is not None:
                    ways.append(_and(self._text(edge.condition), behind))
        return _or(ways)

    def _begins(self, state: State) -> str:
        """Whether anything is taken at the start."""
        ways = []
        for edge in state.transitions:
            if edge.action is Action.TAKE:
                ways.append(self._text(edge.condition))
            elif edge.action is Action.PROCEED:
                ways.append(_and(self._text(edge.condition), self._begins(edge.target)))
        own = [edge.condition for each in (state, *_proceeds(state)) for edge in each.transitions]
        if any(each.asks_for_context for each in own):
            return "True"  # they may look at the context, which is set later
        return _or(ways) or "False"

    def _if(self, condition: Condition, lines: list[str]) -> list[str]:
        text = self._text(condition)
        return lines if text == "True" else [f"if {text}:", *_indented(lines, 1)]

    # -- conditions --------------------------------------------------------------------------------

    def _text(self, condition: Condition) -> str:
        if isinstance(condition, Always):
            return "True"
        if isinstance(condition, Not):
            inner = self._text(condition.condition)
            return "False" if inner == "True" else f"(not {inner})"
        if isinstance(condition, Both):
            return _and(self._text(condition.first), self._text(condition.second))
        if isinstance(condition, Either):
            return _or([self._text(condition.first), self._text(condition.second)]) or "False"
        if isinstance(condition, OfColumns):
            return self._of_columns(condition)
        self._uses[condition] += 1
        asked = self._asked(condition)
        if self._counted[condition] == 1:  # nobody asks again
            return asked
        name = self._leaves.setdefault(condition, f"c{len(self._leaves)}")
        return f"({name} if {name} is not ... else ({name} := {asked}))"

    def _of_columns(self, condition: OfColumns) -> str:
        name = self._expressions[condition]
        called = self._called.setdefault(condition, f"holds{len(self._called)}")
        self._names[called] = condition.bind()
        return f"({name} if {name} is not None else ({name} := {called}(event, None)))"

    def _asked(self, condition: Condition) -> str:
        called = self._called.setdefault(condition, f"holds{len(self._called)}")
        if isinstance(condition, OfEvent):
            self._names[called] = condition.function
            text = inlined(condition.function, "event")
            if text is None:
                return _looked_at(f"{called}(event)")
            self.inlined[condition.function] = False
            return text if gives_a_truth(text) else _looked_at(text)
        if isinstance(condition, OfEventAndContext):
            self._names[called] = condition.function
            text = inlined(condition.function, "event", "context")
            if text is None:
                return _looked_at(f"{called}(event, context)")
            self.inlined[condition.function] = True
            truth = gives_a_truth(text)
            text = _read_from_cells(text, self._chain)
            return text if truth else _looked_at(text)
        if isinstance(condition, IsInstance):
            self._names[called] = condition.kind
            return f"isinstance(event, {called})"
        self._names[called] = condition.bind()
        return f"{called}(event, context)"


def _looked_at(asked: str) -> str:
    """The answer of a condition, which may be one that says nothing: see
    ``flinkpy.core.codegen.idle_results``."""
    return (
        f"(truth if not (truth := {asked}) or truth is True or type(truth) in TRUTHS else "
        "look_at_truth(truth))"
    )


# an event that a condition asks for, or the list of them
_ASKED = re.compile(r"(?<![\w.])context\.get_events_for_pattern\('([^'\\]*)'\)(\[0\]|\[\(-1\)\]|)")
# with one complete match: the number of the last event with which no other match may begin
_DROPS = {SkipKind.NO_SKIP: "", SkipKind.TO_NEXT: "first[3]", SkipKind.PAST_LAST_EVENT: "taken[3]"}


def _read_from_cells(text: str, chain: tuple[str, ...] | None) -> str:
    """A condition's expression with the events it asks for read from the cells, as far as it is
    known which they are. ``chain``: under which names the events were taken, the last first."""
    if chain is None:
        return text
    places: dict[str, list[str]] = {}
    for at, name in enumerate(chain):
        places.setdefault(name, []).append(f"cell{'[4]' * at}[1]")

    def read(asked: re.Match[str]) -> str:
        name, which = asked.groups()
        found = places.get(name)
        if found is None:
            return asked.group()
        if not which:
            return f"[{', '.join(reversed(found))}]"
        return found[-1] if which == "[0]" else found[0]

    return _ASKED.sub(read, text)


def taken_before(automaton: Automaton) -> dict[State, tuple[str, ...] | None]:
    """For each state in which a partial match can wait, the names under which it has taken its
    events, the last first; None if there are several possibilities."""
    found: dict[State, tuple[str, ...] | None] = {}
    states: list[tuple[State, tuple[str, ...] | None]] = [(automaton.start, ())]
    while states:
        origin, chain = states.pop()
        for here in (origin, *_proceeds(origin)):
            for edge in here.transitions:
                if edge.action is Action.PROCEED:
                    continue
                longer = chain
                if edge.action is Action.TAKE and chain is not None:
                    longer = (here.step, *chain) if len(chain) < _LONGEST_CHAIN else None
                if edge.target in found:
                    if found[edge.target] is None or found[edge.target] == longer:
                        continue
                    longer = None
                found[edge.target] = longer
                states.append((edge.target, longer))
    return found


def _forget(names: Iterable[str]) -> str:
    """The statement that forgets what conditions said: ``...`` stands for not asked yet."""
    known = sorted(names)
    return " = ".join([*known, "..."]) if known else "pass"


def expressions_of(automaton: Automaton) -> tuple[OfColumns, ...]:
    """The conditions that are expressions, each once."""
    found = dict.fromkeys(_expressions(automaton.conditions()))
    return tuple(found)


def _expressions(conditions: Iterable[Condition]) -> Iterator[OfColumns]:
    for condition in conditions:
        if isinstance(condition, OfColumns):
            yield condition
        elif isinstance(condition, TwoConditions):
            yield from _expressions((condition.first, condition.second))
        elif isinstance(condition, Not):
            yield from _expressions((condition.condition,))


def waiting_states(automaton: Automaton) -> Iterator[State]:
    """The states in which a partial match can wait for an event."""
    for state in automaton.states:
        for edge in state.transitions:
            if edge.action is not Action.PROCEED and edge.target.kind in (
                StateKind.NORMAL,
                StateKind.PENDING,
            ):
                yield edge.target


def _indented(lines: list[str], levels: int) -> list[str]:
    return ["    " * levels + line for line in lines]


def _and(one: str, other: str) -> str:
    if one == "True":
        return other
    return one if other == "True" else f"({one} and {other})"


def _or(ways: list[str]) -> str | None:
    if not ways:
        return None
    return "True" if "True" in ways else f"({' or '.join(ways)})"


def _proceeds(state: State) -> Iterator[State]:
    """The states that PROCEEDs lead to."""
    for edge in state.transitions:
        if edge.action is Action.PROCEED:
            yield edge.target
            yield from _proceeds(edge.target)


def _reached(state: State) -> Iterator[Condition]:
    """The conditions that may be asked in a state."""
    for each in (state, *_proceeds(state)):
        for edge in each.transitions:
            yield edge.condition
            for behind in _proceeds(edge.target):
                yield from (further.condition for further in behind.transitions)
            yield from (further.condition for further in edge.target.transitions)
