"""Evaluating a window: what its evictor leaves of it, what its function makes of that, and the timestamp the results get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from flinkpy.core.errors import ProgramError
from flinkpy.operators.base import OperatorContext
from flinkpy.operators.chain.output_isolation import all_private, private
from flinkpy.operators.functions import Function, method_of
from flinkpy.operators.process.yielding import Results, stamp_new
from flinkpy.operators.process.yielding_loop import LONGEST_STRIDE, MOMENT_S
from flinkpy.windowing.evictors import Evictor
from flinkpy.windowing.general.contents import Contents
from flinkpy.windowing.general.contexts import EvictorContext, FunctionContext
from flinkpy.windowing.general.namespaces import MISSING
from flinkpy.windowing.window_functions import AllWindowFunction, ProcessAllWindowFunction, ProcessWindowFunction, WindowFunction

Call: TypeAlias = "Callable[[Any, Any, list[Any]], Any]"  # (key, window, inputs) -> results

KEYED, UNKEYED = (WindowFunction, ProcessWindowFunction), (AllWindowFunction, ProcessAllWindowFunction)


def check_window_function(function: Any, keyed: bool) -> None:
    """ProgramError for what is no window function, or one of the other kind of stream."""
    if function is None:
        return
    if isinstance(function, type):
        raise ProgramError(f"a window function object is needed, not its class: write {function.__name__}()")
    wanted, other = (KEYED, UNKEYED) if keyed else (UNKEYED, KEYED)
    if isinstance(function, other):
        stream = "a keyed stream" if keyed else "a stream without keys (window_all)"
        raise ProgramError(f"windows of {stream} take a {wanted[0].__name__} or a {wanted[1].__name__}; {type(function).__name__} is neither")
    if not isinstance(function, wanted) and (isinstance(function, Function) or not callable(function)):
        raise ProgramError(f"a {wanted[0].__name__} or a {wanted[1].__name__} is needed, this is {function!r:.80}")


def bound_call(function: Any, keyed: bool, context: FunctionContext) -> Call:
    """The user's function as a function of key, window and inputs. A plain callable is taken for ``apply``."""
    if isinstance(function, ProcessWindowFunction):
        process = function.process
        return lambda key, window, inputs: process(key, context, inputs)
    if isinstance(function, ProcessAllWindowFunction):
        process_all = function.process
        return lambda key, window, inputs: process_all(context, inputs)
    apply = method_of(function, "apply")
    return apply if keyed else lambda key, window, inputs: apply(window, inputs)


class Evaluation:
    """``evaluate(results, key, window, contents)`` appends to the results; ``left`` says, when the function is through, which contents stay.

    ``copies``: the contents live on, or records are in other windows too, so the function gets copies of what could be changed.

    Of a function that yields, what moves on at once is appended, and then there is a ``rest``, which ``go_on`` appends further parts of.
    """

    def __init__(self, contents: Contents, call: Call | None, copies: bool, context: OperatorContext) -> None:
        self._inputs, self._call = contents.inputs, call
        self._limit, self._now = context.batch_records, context.clock.monotonic
        self.rest: Iterator[Any] | None = None
        self._rests_time = 0
        self._copies, self._copies_results = copies and call is not None, not context.object_reuse

    def evaluate(self, results: Results, key: Any, window: Any, contents: Any) -> Any:
        """Gives what ``left`` is asked about."""
        inputs = self._inputs(contents)
        self.give(results, key, window, list(all_private(inputs)) if self._copies else inputs)
        return contents

    def left(self, begun: Any, window: Any) -> Any:
        """The contents that stay, of what ``evaluate`` gave; MISSING where there are none."""
        return begun

    def give(self, results: Results, key: Any, window: Any, inputs: list[Any]) -> None:
        """What the function makes of the inputs, stamped."""
        given = inputs if self._call is None else self._call(key, window, inputs)
        if given is None:
            return
        copies = self._copies_results
        if self._call is None or isinstance(given, (list, tuple)):
            results.values.extend(all_private(given) if copies else given)
            stamp_new(results, window.max_timestamp())
        else:
            self.rest, self._rests_time = map(private, given) if copies else iter(given), window.max_timestamp()
            self.go_on(results)

    def go_on(self, results: Results) -> None:
        """Appends what the function yields in a moment, at most a batch."""
        rest, out, until = self.rest, results.values, self._now() + MOMENT_S
        assert rest is not None
        stride, left = 1, 1
        for value in rest:
            out.append(value)
            left -= 1
            if left <= 0:
                if len(out) >= self._limit or self._now() >= until:
                    break
                stride = left = min(2 * stride, LONGEST_STRIDE)
        else:
            self.rest = None
        stamp_new(results, self._rests_time)


class EvictingEvaluation(Evaluation):
    """Behind an evictor, the contents being all records with their timestamps."""

    def __init__(self, contents: Contents, call: Call | None, context: OperatorContext, evictor: Evictor[Any, Any], asked: EvictorContext) -> None:
        super().__init__(contents, call, True, context)
        self._copies = not context.object_reuse  # also where no function follows: reduce may change the records
        self._reduced, self._evictor, self._context = contents.reduced, evictor, asked

    def evaluate(self, results: Results, key: Any, window: Any, contents: Any) -> Any:
        elements = list(contents)
        self._evictor.evict_before(elements, len(elements), window, self._context)
        values = [each.value for each in elements]
        self.give(results, key, window, self._reduced(list(all_private(values)) if self._copies else values))
        return elements

    def left(self, begun: Any, window: Any) -> Any:
        """What the evictor leaves."""
        self._evictor.evict_after(begun, len(begun), window, self._context)
        return begun or MISSING
