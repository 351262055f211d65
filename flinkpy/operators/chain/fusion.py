"""Fusion: adjacent stages of a chain as generated loops over a whole batch.

The source text is made for this chain alone, with one statement a line. The user's functions are
bound as default arguments, because locals are fast; those that only compute an expression are
inlined (here the second, ``lambda x: x > 3``)::

    def fused(values, f0=f0, f1=f1, f2=f2):
        out = []
        for x0 in values:
            x1 = f0(x0)
            x1 = x1 if type(x1) in ATOMS else private(x1)
            if not (x1 > 3):
                continue
            x2 = f2(x1)
            out.append(x2 if type(x2) in ATOMS else private(x2))
        return out, None, False

Five decisions, the first three measured:

- A function that only computes an expression of its argument is inlined
  (``flinkpy.core.codegen.inlining``): the call would cost more than the expression.
- A single map is a comprehension, the fastest form there is; the position of its iterator tells
  which record failed. Everything else is a plain loop with ``out.append(...)``, which is within a
  few percent of a comprehension (the interpreter specialises both). ``extend`` makes flat_map a
  quarter faster. When something raises, the loop's ``x0``, ``x1`` … are still in the frame, on
  every version of Python (3.12 inlines comprehensions and clears their variables). So finding the
  failing record costs nothing: the line and the locals of the frame tell it.
- A loop has at most one stage that changes the number of records. The length of its result is the
  count of every stage behind that one, so exact counters need no instruction per record. A second
  such stage starts another loop, and so does whatever follows a flat_map.
- A loop with a flat_map is a generator. If the user's function yields, the loop hands its results
  on after a moment, or when the batch is full, and the run parks
  (``flinkpy.operators.chain.parking``). A list is taken as a whole, which is faster.
- For batches with timestamps there is a second variant of the function. Only loops with a filter or
  flat_map touch the timestamps.

The result of a called function is copied if it can be changed
(``flinkpy.operators.output.output_isolation``); so is the record that a filter lets through. An
inlined expression keeps nothing, so its result needs no copy, except with flat_map, where several
results may be the same object. For many functions the bytecode shows that they keep no result of a
text or a number (``flinkpy.core.codegen.escape_analysis``): for these a look at the argument's type
is enough.

A coroutine or a generator as a result is an error (``flinkpy.core.codegen.idle_results``). What is
copied unless it is an atom is looked at anyway. Other results are looked at only if the function's
text leaves it open what they are; truth values only if they are not ``True``."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.codegen.escape_analysis import PLAIN, Kind, kind_of_results, makes_generators
from flinkpy.core.codegen.generated import compile_function, failure_in, forget_source
from flinkpy.core.codegen.idle_results import IDLE, TRUTHS, look_at_truth
from flinkpy.core.codegen.inlining import inlined, raised_by
from flinkpy.core.codegen.possible_results import may_be_always_true, may_give_idle
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.mutability import ATOMS
from flinkpy.operators.base import Work, run_to_end
from flinkpy.operators.chain.stages import Stage, StageKind, StageOperator
from flinkpy.operators.output.output_isolation import all_private, none_idle, not_idle, private
from flinkpy.operators.output.yielding_loop import FEW, LONGEST_STRIDE, MOMENT_S
from flinkpy.operators.row_batches import rows
from flinkpy.operators.user_errors import user_code_error

CURSOR = "cursor"  # the iterator of a comprehension
_NAMES = {
    "ATOMS": ATOMS,
    "IDLE": IDLE,
    "PLAIN": PLAIN,
    "TRUTHS": TRUTHS,
    "all_private": all_private,
    "look_at_truth": look_at_truth,
    "none_idle": none_idle,
    "not_idle": not_idle,
    "private": private,
}


@dataclass
class FusedSource:
    """The text of a fused function, and what each of its lines belongs to."""

    lines: list[str] = field(default_factory=list)
    # line number -> stage, and the variable with its input
    origins: dict[int, tuple[int, str]] = field(default_factory=dict)

    def add(self, indent: int, text: str, stage: int | None = None, variable: str = "") -> None:
        self.lines.append("    " * indent + text)
        if stage is not None:
            self.origins[len(self.lines)] = stage, variable

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def segments(kinds: Sequence[StageKind]) -> list[range]:
    """Cuts the stages into loops with at most one filter or flat_map each, a flat_map being the
    last of its loop.

    >>> segments(
    ...     [StageKind.MAP, StageKind.FILTER, StageKind.MAP, StageKind.FLAT_MAP, StageKind.MAP]
    ... )
    [range(0, 3), range(3, 4), range(4, 5)]
    """
    starts, counted = [0], False
    for index, kind in enumerate(kinds):
        if counted and (kind is not StageKind.MAP or kinds[index - 1] is StageKind.FLAT_MAP):
            starts.append(index)
            counted = False
        counted = counted or kind is not StageKind.MAP
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(kinds)])]


def fused_source(
    stages: Sequence[Stage], loop: range, timestamped: bool, *, copies: bool = True
) -> FusedSource:
    """One variant of the function ``fused`` for the stages of one loop: values (and timestamps) in;
    values, timestamps, whether more follows out."""
    source, kinds = FusedSource(), [stage.kind for stage in stages]
    names = ", ".join(f"f{index}=f{index}" for index in loop)
    source.add(0, f"def fused(values{', stamps' if timestamped else ''}, {names}):")
    changes = any(kinds[index] is not StageKind.MAP for index in loop)
    _Loop(source, stages, loop, timestamped and changes, copies).add()
    source.add(
        1,
        (
            f"{_handing(kinds[loop[-1]])} out, "
            f"{('kept' if changes else 'stamps') if timestamped else 'None'}, False"
        ),
    )
    return source


def _handing(last: StageKind) -> str:
    return "yield" if last is StageKind.FLAT_MAP else "return"


class _Loop:
    """Writes the loop of one fused function."""

    def __init__(
        self, source: FusedSource, stages: Sequence[Stage], loop: range, stamped: bool, copies: bool
    ) -> None:
        self.source = source
        self.stages = stages
        self.loop = loop
        self.stamped = stamped
        self.copies = copies
        # others only compute
        self._keeping = {
            index for index in loop if copies and inlined(stages[index].function, "x") is None
        }
        self._looking = {
            index
            for index in loop
            if index not in self._keeping
            and may_give_idle(
                stages[index].function, of_many=stages[index].kind is StageKind.FLAT_MAP
            )
        }

    def add(self) -> None:
        source, loop, kinds = self.source, self.loop, [stage.kind for stage in self.stages]
        if len(loop) == 1 and kinds[loop[0]] is StageKind.MAP:
            source.add(1, f"{CURSOR} = iter(values)")
            result = self._result(loop[0], "x")
            if loop[0] in self._keeping:
                result = (
                    f"y if type(y := {result}) in ATOMS{self._or_fixed(loop[0], 'x')} else "
                    "private(y)"
                )
            source.add(1, f"out = [{result} for x in {CURSOR}]", loop[0], CURSOR)
            if loop[0] in self._looking:  # all at once
                source.add(1, "if not IDLE.isdisjoint(map(type, out)):")
                source.add(2, "for x, y in zip(values, out):")
                source.add(3, "not_idle(y)", loop[0], "x")
            return
        source.add(1, "out = []")
        if self.stamped:
            source.add(1, "kept = []")
        if kinds[loop[-1]] is StageKind.FLAT_MAP:
            source.add(1, f"until, stride, left = now() + {MOMENT_S}, 1, 1")
        value = f"x{loop[0]}"
        source.add(
            1,
            f"for {value}, stamp in zip(values, stamps):"
            if self.stamped
            else f"for {value} in values:",
        )
        for index in loop:
            if kinds[index] is StageKind.MAP:
                value = self._add_map(index, value)
            elif kinds[index] is StageKind.FILTER:
                value = self._add_filter(index, value)
            else:
                self._add_flat_map(index, value)
        if kinds[loop[-1]] is not StageKind.FLAT_MAP:
            source.add(2, f"out.append({value})")
            if self.stamped:
                source.add(2, "kept.append(stamp)")

    def _result(self, index: int, value: str) -> str:
        return inlined(self.stages[index].function, value) or f"f{index}({value})"

    @staticmethod
    def _private(name: str, or_fixed: str = "") -> str:
        return f"{name} if type({name}) in ATOMS{or_fixed} else private({name})"

    def _or_fixed(self, index: int, value: str) -> str:
        """A further condition under which a result needs no copy: the function keeps no result of a
        plain value, and this value is plain."""
        function = self.stages[index].function
        kind = kind_of_results(function)
        if kind is None or (kind is not Kind.FIXED and makes_generators(function)):
            return ""
        return f" or type({value}) in PLAIN"

    def _add_map(self, index: int, value: str) -> str:
        following = f"x{index + 1}"
        self.source.add(2, f"{following} = {self._result(index, value)}", index, value)
        if index in self._keeping:
            self.source.add(
                2,
                f"{following} = {self._private(following, self._or_fixed(index, value))}",
                index,
                value,
            )
        elif index in self._looking:
            self.source.add(2, f"{following} = {self._looked_at(following)}", index, value)
        return following

    @staticmethod
    def _looked_at(name: str) -> str:
        return f"{name} if type({name}) not in IDLE else not_idle({name})"

    def _add_filter(self, index: int, value: str) -> str:
        condition = self._result(index, value)
        looks = may_be_always_true(self.stages[index].function)
        if looks:
            self.source.add(2, f"truth = {condition}", index, value)
            condition = "truth"
        self.source.add(2, f"if not {condition}:", index, value)
        self.source.add(3, "continue")
        if looks:
            self.source.add(2, "if truth is not True and type(truth) not in TRUTHS:")
            self.source.add(3, "look_at_truth(truth)", index, value)
        if index not in self._keeping:
            return value
        following = f"x{index + 1}"
        self.source.add(2, f"{following} = {self._private(value)}", index, value)
        return following

    def _add_flat_map(self, index: int, value: str) -> None:
        """Takes a list as a whole; takes the results of anything else one by one, and hands them on
        in time."""
        source, fixed = self.source, False
        source.add(2, f"many = {self._result(index, value)}", index, value)
        if self.copies and kind_of_results(self.stages[index].function) in (Kind.FIXED, Kind.FLAT):
            source.add(2, f"fixed = type({value}) in PLAIN")  # then nothing in it can change
            fixed = True
        source.add(2, "if type(many) is list or type(many) is tuple:")
        if self.copies:
            each = (
                f"all_private(many) if len(many) > {FEW} else [{self._private('one')} for one "
                "in many]"
            )
            source.add(3, f"out += {'many if fixed else ' if fixed else ''}{each}", index, value)
        else:
            given = "none_idle(many)" if index in self._looking else "many"
            source.add(3, f"out += {given}", index, value)
        source.add(2, "elif many is not None:")
        source.add(3, "for one in many:", index, value)
        if self.copies:
            one = self._private("one", " or fixed" if fixed else "")
        else:
            one = self._looked_at("one") if index in self._looking else "one"
        source.add(4, f"out.append({one})", index, value)
        source.add(4, "left -= 1")
        source.add(4, "if left <= 0:")
        source.add(5, "if len(out) >= limit or now() >= until:")
        self._add_stamps(6)
        source.add(6, f"yield out, {'kept' if self.stamped else 'None'}, True")
        source.add(6, "out = []")
        if self.stamped:
            source.add(6, "kept = []")
        source.add(6, f"until, stride = now() + {MOMENT_S}, 1")
        source.add(5, "else:")
        source.add(6, f"stride = min(2 * stride, {LONGEST_STRIDE})")
        source.add(5, "left = stride")
        self._add_stamps(2)

    def _add_stamps(self, indent: int) -> None:
        if self.stamped:
            self.source.add(indent, "kept.extend([stamp] * (len(out) - len(kept)))")


class FusedRun:
    """The fused form of adjacent operators: processes batches in their place, and emits the results
    to the output of the last one.

    Only records come here. The operators keep their lifecycle, and control elements go through each
    of them."""

    def __init__(self, operators: Sequence[StageOperator]) -> None:
        self.operators = tuple(operators)
        self.parks = any(each.parks for each in operators)
        self.totals: list[int] = []  # records into the run, and behind each of its loops
        self._plain: list[_Compiled] = []
        self._stamped: list[_Compiled] = []

    def compile(self) -> None:
        """Makes the functions; the operators must be open."""
        stages = [each.stage() for each in self.operators]
        self._segments = segments([stage.kind for stage in stages])
        self.totals = [0] * (len(self._segments) + 1)
        context = self.operators[0].context
        names = {"now": context.clock.monotonic, "limit": context.batch_records}
        self._plain, self._stamped = (
            [
                _Compiled(stages, loop, timestamped, not context.object_reuse, names)
                for loop in self._segments
            ]
            for timestamped in (False, True)
        )
        self._emit = self.operators[-1].output.emit
        self._before = [
            each.before_batch
            for each in self.operators
            if type(each).before_batch is not StageOperator.before_batch
        ]

    def process_batch(self, batch: Batch) -> Work | None:
        if type(batch) is not RowBatch:
            batch = rows(batch)
        self.totals[0] += len(batch.values)
        for prepare in self._before:
            prepare()
        work = self._through(0, batch.values, batch.timestamps)
        if self.parks:
            return work
        run_to_end(work)
        return None

    def _through(self, number: int, values: list[Any], stamps: list[int] | None) -> Work:
        """Takes records through the loops from that one on. What a loop hands on early goes all the
        way before the loop continues."""
        for loop in (self._plain if stamps is None else self._stamped)[number:]:
            number += 1
            try:
                given = loop.function(values) if stamps is None else loop.function(values, stamps)
                values, stamps, more = next(given) if loop.parks else given
            except BaseException as error:
                raise self._explained(loop, error) from error
            self.totals[number] += len(values)
            while more:
                yield from self._through(number, values, stamps)
                yield
                try:
                    values, stamps, more = next(given)
                except BaseException as error:
                    raise self._explained(loop, error) from error
                self.totals[number] += len(values)
            if not values:
                return
        self._emit(RowBatch(values, stamps))

    def counters(self) -> list[tuple[int, int]]:
        """Records in and out of each operator."""
        counted = []
        for number, stages in enumerate(self._segments if self.totals else ()):
            before, after = self.totals[number], self.totals[number + 1]
            changed = False
            for index in stages:
                changes = self.operators[index].stage().kind is not StageKind.MAP
                counted.append(
                    (after if changed else before, after if changed or changes else before)
                )
                changed = changed or changes
        return counted or [(0, 0)] * len(self.operators)

    def close(self) -> None:
        """Forgets the source texts."""
        for loop in (*self._plain, *self._stamped):
            forget_source(loop.function)

    def _explained(self, loop: _Compiled, error: BaseException) -> FlinkpyError:
        failure = failure_in(loop.function, error.__traceback__)
        # Python makes a RuntimeError of what leaves a generator
        if failure is None and isinstance(error.__cause__, StopIteration):
            error = error.__cause__
            failure = failure_in(loop.function, error.__traceback__)
        origin = loop.source.origins.get(failure.line) if failure else None
        if failure is None or origin is None:
            return user_code_error(error, self.operators[0].context)
        stage, variable = origin
        record = (
            _last_taken(failure.variables)
            if variable == CURSOR
            else failure.variables.get(variable)
        )
        error = raised_by(self.operators[stage].stage().function, [record], error)
        return user_code_error(error, self.operators[stage].context, record)

    def __repr__(self) -> str:
        return f"<FusedRun {' → '.join(operator.context.name for operator in self.operators)}>"


def _last_taken(variables: dict[str, Any]) -> Any:
    """The record a comprehension had just taken from its list."""
    values = variables["values"]
    return values[len(values) - operator.length_hint(variables[CURSOR]) - 1]


class _Compiled:
    """One variant of one loop. If it ``parks`` its function is a generator."""

    __slots__ = ("function", "parks", "source")

    def __init__(
        self,
        stages: Sequence[Stage],
        loop: range,
        timestamped: bool,
        copies: bool,
        names: dict[str, Any],
    ) -> None:
        self.source = fused_source(stages, loop, timestamped, copies=copies)
        self.parks = stages[loop[-1]].kind is StageKind.FLAT_MAP
        functions = {f"f{index}": stages[index].function for index in loop}
        self.function = compile_function(
            "fused", self.source.text, {**_NAMES, **names, **functions}
        )
