"""How a window is evaluated: its evictor removes records, its function is called, and the results
get the window's last timestamp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import Function, method_of
from flinkpy.operators.output.output_isolation import all_private, none_idle, not_idle, private
from flinkpy.operators.output.yielding_loop import LONGEST_STRIDE, MOMENT_S
from flinkpy.operators.yielding import Results, stamp_new
from flinkpy.windowing.evictors import Evictor
from flinkpy.windowing.general.contents import ContentsFunctions
from flinkpy.windowing.general.contexts import EvictorContext, FunctionContext
from flinkpy.windowing.general.per_window.namespaces import MISSING
from flinkpy.windowing.window_functions import (
    AllWindowFunction,
    ProcessAllWindowFunction,
    ProcessWindowFunction,
    WindowFunction,
)

if TYPE_CHECKING:
    from flinkpy.windowing.windows import Window

Call: TypeAlias = "Callable[[Any, Any, list[Any]], Any]"  # (key, window, inputs) -> results

KEYED = (WindowFunction, ProcessWindowFunction)
UNKEYED = (AllWindowFunction, ProcessAllWindowFunction)


def check_window_function(function: object, keyed: bool) -> None:
    """Raises ProgramError unless it is a window function for this kind of stream."""
    if function is None:
        return
    if isinstance(function, type):
        raise ProgramError(
            f"a window function object is needed, not its class: write {function.__name__}()"
        )
    wanted, other = (KEYED, UNKEYED) if keyed else (UNKEYED, KEYED)
    if isinstance(function, other):
        stream = "a keyed stream" if keyed else "a stream without keys (window_all)"
        raise ProgramError(
            f"windows of {stream} take a {wanted[0].__name__} or a {wanted[1].__name__}; "
            f"{type(function).__name__} is neither"
        )
    if not isinstance(function, wanted) and (
        isinstance(function, Function) or not callable(function)
    ):
        raise ProgramError(
            f"a {wanted[0].__name__} or a {wanted[1].__name__} is needed, this is {function!r:.80}"
        )


def bound_call(function: object, keyed: bool, context: FunctionContext) -> Call:
    """The user's function as a function of key, window and inputs. A plain callable is called like
    ``apply``."""
    if isinstance(function, ProcessWindowFunction):
        process = function.process
        return lambda key, window, inputs: process(key, context, inputs)
    if isinstance(function, ProcessAllWindowFunction):
        process_all = function.process
        return lambda key, window, inputs: process_all(context, inputs)
    apply = method_of(function, "apply")
    return apply if keyed else lambda key, window, inputs: apply(window, inputs)


def bound_clear(function: object, context: FunctionContext) -> Callable[[], None] | None:
    """The ``clear`` of a process window function, for the context's current window; None if the
    function does not override it."""
    bases = (ProcessWindowFunction, ProcessAllWindowFunction)
    if not isinstance(function, bases) or type(function).clear in [base.clear for base in bases]:
        return None
    return partial(function.clear, context)


class Evaluation:
    """Evaluates windows. ``evaluate`` appends a window's results; ``left`` is called when the
    function has finished, and returns the contents that stay.

    A function may yield. Then ``evaluate`` appends what it yields in a moment, ``rest`` is what is
    still to come, and ``go_on`` appends more of it. With ``copies`` the function gets copies of
    records that could be changed, because the contents stay, or records are in other windows too.
    """

    def __init__(
        self, contents: ContentsFunctions, call: Call | None, copies: bool, context: OperatorContext
    ) -> None:
        self._inputs, self._call = contents.inputs, call
        self._limit, self._now = context.batch_records, context.clock.monotonic
        self.rest: Iterator[Any] | None = None
        self._timestamp_of_rest = 0
        self._copies, self._copies_results = copies and call is not None, not context.object_reuse

    def evaluate(self, results: Results, key: object, window: Window, contents: object) -> Any:
        """Evaluates the window; pass what it returns to ``left``."""
        inputs = self._inputs(contents)
        self.append_results(
            results, key, window, list(all_private(inputs)) if self._copies else inputs
        )
        return contents

    def left(self, evaluated: object, window: Window) -> Any:
        """The contents that stay; MISSING if none do."""
        return evaluated

    def append_results(self, results: Results, key: Any, window: Window, inputs: list[Any]) -> None:
        """Calls the function, and gives its results the window's last timestamp."""
        given = inputs if self._call is None else self._call(key, window, inputs)
        if given is None:
            return
        copies = self._copies_results
        if self._call is None or isinstance(given, (list, tuple)):
            results.values.extend(all_private(given) if copies else none_idle(given))
            stamp_new(results, window.max_timestamp())
        else:
            self.rest = map(private if copies else not_idle, given)
            self._timestamp_of_rest = window.max_timestamp()
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
        stamp_new(results, self._timestamp_of_rest)


class EvictingEvaluation(Evaluation):
    """Evaluates windows with an evictor: the contents are all records with their timestamps."""

    def __init__(
        self,
        contents: ContentsFunctions,
        call: Call | None,
        context: OperatorContext,
        evictor: Evictor[Any, Any],
        evictor_context: EvictorContext,
    ) -> None:
        super().__init__(contents, call, True, context)
        # even without a window function, because reduce may change the records
        self._copies = not context.object_reuse
        self._reduced = contents.reduced
        self._evictor = evictor
        self._context = evictor_context

    def evaluate(self, results: Results, key: Any, window: Window, contents: Any) -> Any:
        elements = list(contents)
        self._evictor.evict_before(elements, len(elements), window, self._context)
        values = [each.value for each in elements]
        self.append_results(
            results,
            key,
            window,
            self._reduced(list(all_private(values)) if self._copies else values),
        )
        return elements

    def left(self, evaluated: Any, window: Window) -> Any:
        """The records that the evictor leaves."""
        self._evictor.evict_after(evaluated, len(evaluated), window, self._context)
        return evaluated or MISSING
