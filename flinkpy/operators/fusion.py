"""Fusion: adjacent stages of a chain as one generated function over a whole batch.

The source is made for this chain alone, one statement a line, the user's functions bound as default arguments (fast locals), and those that are
mere expressions written out (here the second, ``lambda x: x > 3``)::

    def fused(values, f0=f0, f1=f1, f2=f2):
        out0 = []
        for x0 in values:
            x1 = f0(x0)
            if not (x1 > 3):
                continue
            out0.append(f2(x1))
        return out0, None, (len(out0),)

Five decisions, the first four measured:

- A function that only computes from its argument is not called but written out (``flinkpy.core.inlining``): a call costs more than what it does.

- A map that stands alone is a comprehension, the fastest form there is; how far its iterator had come tells the failing record. All else is
  a plain loop with ``out.append(...)``: within a few percent of it (the interpreter specialises both), ``extend`` makes flat_map a quarter
  faster, and the loop keeps ``x0``, ``x1`` … in the frame when something raises, on every version (3.12 inlines comprehensions and
  clears their variables on the way out). So the failing record costs nothing to find: it is line and locals of the frame.
- One loop holds at most one stage that changes the number of records. Behind it the length of the list is the count of every stage of that loop,
  so exact counters need no instruction per record. A second such stage starts a loop of its own.
- Timestamps are a second variant of the function, and only its loops with a filter or flat_map touch them: maps keep the list as it is.
- A function that is called, and so could keep what it gives and change it later, is looked after (``flinkpy.operators.given_out``) until a batch has
  shown that it gives what cannot change; then the functions are made anew without that.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from flinkpy.core.elements import Batch, RowBatch
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.generated import compile_function, failure_in, forget_source
from flinkpy.core.inlining import call_or_inline, inlined, raised_by
from flinkpy.core.mutability import looks_mutable
from flinkpy.operators.errors import user_code_error
from flinkpy.operators.given_out import LookedAfter, copied
from flinkpy.operators.stages import Stage, StageKind, StageOperator
from flinkpy.operators.stateless import rows

CURSOR = "cursor"  # the iterator of a comprehension


@dataclass
class FusedSource:
    """The text of a fused function, and what each of its lines belongs to."""

    lines: list[str] = field(default_factory=list)
    origins: dict[int, tuple[int, str]] = field(default_factory=dict)  # line number -> stage, and the variable with its input

    def add(self, indent: int, text: str, stage: int | None = None, variable: str = "") -> None:
        self.lines.append("    " * indent + text)
        if stage is not None:
            self.origins[len(self.lines)] = stage, variable

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def segments(kinds: Sequence[StageKind]) -> list[range]:
    """Cuts the stages into loops with at most one filter or flat_map each.

    >>> segments([StageKind.MAP, StageKind.FILTER, StageKind.MAP, StageKind.FLAT_MAP])
    [range(0, 3), range(3, 4)]
    """
    starts, counted = [0], False
    for index, kind in enumerate(kinds):
        if kind is not StageKind.MAP:
            if counted:
                starts.append(index)
            counted = True
    return [range(start, end) for start, end in zip(starts, [*starts[1:], len(kinds)])]


def fused_source(stages: Sequence[Stage], timestamped: bool) -> FusedSource:
    """One variant of the function ``fused``: values (and timestamps) in; values (and timestamps) and the length behind each loop out."""
    source, kinds = FusedSource(), [stage.kind for stage in stages]
    names = ", ".join(f"f{index}=f{index}" for index in range(len(kinds)))
    source.add(0, f"def fused(values{', stamps' if timestamped else ''}, {names}):")
    loops = segments(kinds)
    for number, loop in enumerate(loops):
        changes = any(kinds[index] is not StageKind.MAP for index in loop)
        _add_loop(source, stages, loop, f"out{number}", timestamped and changes)
        source.add(1, f"values = out{number}")
        if timestamped and changes:
            source.add(1, "stamps = kept")
    lengths = "".join(f"len(out{number}), " for number in range(len(loops)))
    source.add(1, f"return values, {'stamps' if timestamped else 'None'}, ({lengths})")
    return source


def _add_loop(source: FusedSource, stages: Sequence[Stage], loop: range, out: str, stamped: bool) -> None:
    kinds = [stage.kind for stage in stages]
    if len(loop) == 1 and kinds[loop[0]] is StageKind.MAP:
        source.add(1, f"{CURSOR} = iter(values)")
        source.add(1, f"{out} = [{_result(stages, loop[0], 'x')} for x in {CURSOR}]", loop[0], CURSOR)
        return
    source.add(1, f"{out} = []")
    if stamped:
        source.add(1, "kept = []")
    value, indent = f"x{loop[0]}", 2
    source.add(1, f"for {value}, stamp in zip(values, stamps):" if stamped else f"for {value} in values:")
    for index in loop:
        last, following, result = index == loop[-1], f"x{index + 1}", _result(stages, index, value)
        if kinds[index] is StageKind.MAP:
            source.add(indent, f"{out}.append({result})" if last else f"{following} = {result}", index, value)
        elif kinds[index] is StageKind.FILTER:
            source.add(indent, f"if not {result}:", index, value)
            source.add(indent + 1, "continue")
            following = value
            if last:
                source.add(indent, f"{out}.append({value})")
        else:
            indent = _add_flat_map(source, index, value, result, following, out, last, indent)
        value = following
    if stamped:
        _add_stamps(source, kinds[loop[-1]] is StageKind.FLAT_MAP, out, indent)


def _result(stages: Sequence[Stage], index: int, value: str) -> str:
    return call_or_inline(stages[index].function, f"f{index}", value)


def _add_flat_map(source: FusedSource, index: int, value: str, result: str, following: str, out: str, last: bool, indent: int) -> int:
    """Adds the call and what goes over its results; gives the indentation of what follows."""
    source.add(indent, f"many = {result}", index, value)
    source.add(indent, "if many is None:")
    source.add(indent + 1, "continue")
    if last:
        source.add(indent, f"{out}.extend(many)", index, value)
        return indent
    source.add(indent, f"for {following} in many:", index, value)
    return indent + 1


def _add_stamps(source: FusedSource, many: bool, out: str, indent: int) -> None:
    source.add(indent, f"kept.extend([stamp] * (len({out}) - len(kept)))" if many else "kept.append(stamp)")


class FusedRun:
    """The fused form of adjacent operators: takes the batches in their place and passes the results on to where the last one leads.

    Only records come here. The operators keep their lifecycle, and control elements go through each of them.
    """

    def __init__(self, operators: Sequence[StageOperator]) -> None:
        self.operators = tuple(operators)
        self.totals: list[int] = []  # records into the run, and behind each of its loops
        self._plain: Any = None
        self._stamped: Any = None

    def compile(self) -> None:
        """Makes the functions; the operators must be open."""
        self._segments = segments([operator.stage().kind for operator in self.operators])
        self.totals = [0] * (len(self._segments) + 1)
        self._may_keep = [at for at, operator in enumerate(self.operators) if _may_keep(operator)]
        self._looked_after: dict[int, LookedAfter] = {}
        self._gave_mutable = False
        self._compile(self._may_keep)
        self._emit = self.operators[-1].output.emit

    def _compile(self, looked_after: Sequence[int]) -> None:
        """Makes the functions, with private results of these stages."""
        self._forget()
        stages = [operator.stage() for operator in self.operators]
        self._looked_after = {at: LookedAfter(stages[at].function, stages[at].kind is StageKind.FLAT_MAP) for at in looked_after}
        for at, careful in self._looked_after.items():
            stages[at] = Stage(stages[at].kind, careful.call)
        self._plain, self._plain_source = _compiled(stages, timestamped=False)
        self._stamped, self._stamped_source = _compiled(stages, timestamped=True)

    def _look_at(self, values: list[Any]) -> None:
        """After each batch: functions that turned out to need it not are not looked after any more; again, when results begin to be changeable."""
        looked_after = self._looked_after
        if looked_after:
            needed = [at for at, careful in looked_after.items() if careful.made_copies or not careful.was_called]
            if len(needed) < len(looked_after):
                self._gave_mutable |= any(careful.gave_mutable for careful in looked_after.values())
                self._compile(needed)
        elif not self._gave_mutable and looks_mutable(values):
            self._gave_mutable = True
            values[:] = map(copied, values)
            self._compile(self._may_keep)

    def process_batch(self, batch: Batch) -> None:
        if type(batch) is not RowBatch:
            batch = rows(batch)
        stamps = batch.timestamps
        try:
            values, stamps, lengths = self._plain(batch.values) if stamps is None else self._stamped(batch.values, stamps)
        except Exception as error:
            raise self._explained(error, stamps is not None) from error
        totals = self.totals
        totals[0] += len(batch.values)
        for index, length in enumerate(lengths, 1):
            totals[index] += length
        if self._may_keep:
            self._look_at(values)
        if values:
            self._emit(RowBatch(values, stamps))

    def counters(self) -> list[tuple[int, int]]:
        """Records in and out of each operator."""
        counted = []
        for number, stages in enumerate(self._segments if self.totals else ()):
            before, after = self.totals[number], self.totals[number + 1]
            changed = False
            for index in stages:
                changes = self.operators[index].stage().kind is not StageKind.MAP
                counted.append((after if changed else before, after if changed or changes else before))
                changed = changed or changes
        return counted or [(0, 0)] * len(self.operators)

    def close(self) -> None:
        """Gives the sources back."""
        self._forget()

    def _forget(self) -> None:
        for function in (self._plain, self._stamped):
            if function is not None:
                forget_source(function)

    def _explained(self, error: Exception, timestamped: bool) -> FlinkpyError:
        function, source = (self._stamped, self._stamped_source) if timestamped else (self._plain, self._plain_source)
        failure = failure_in(function, error.__traceback__)
        origin = source.origins.get(failure.line) if failure else None
        if failure is None or origin is None:
            return user_code_error(error, self.operators[0].context)
        stage, variable = origin
        record = _last_taken(failure.variables) if variable == CURSOR else failure.variables.get(variable)
        error = raised_by(self.operators[stage].stage().function, [record], error)
        return user_code_error(error, self.operators[stage].context, record)

    def __repr__(self) -> str:
        return f"<FusedRun {' → '.join(operator.context.name for operator in self.operators)}>"


def _may_keep(operator: StageOperator) -> bool:
    """Whether what the operator gives could be changed by its function later on: not by one that only computes."""
    stage = operator.stage()
    return stage.kind is not StageKind.FILTER and not operator.context.object_reuse and inlined(stage.function, "x") is None


def _last_taken(variables: dict[str, Any]) -> Any:
    """The record a comprehension had just taken from its list."""
    values = variables["values"]
    return values[len(values) - operator.length_hint(variables[CURSOR]) - 1]


def _compiled(stages: Sequence[Stage], timestamped: bool) -> tuple[Callable[..., Any], FusedSource]:
    source = fused_source(stages, timestamped)
    return compile_function("fused", source.text, {f"f{index}": stage.function for index, stage in enumerate(stages)}), source
