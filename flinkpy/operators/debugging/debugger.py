"""Python's debugger, stopped at the first line of the user's code of one operator.

A trace function looks at each call of Python code while the operator works, and hands the first
frame of the user's that fits over to ``pdb``. Frames of the engine are skipped when stepping. While
a trace function is set no function is inlined, so there is a call to stop at."""

from __future__ import annotations

import bdb
import gc
import pdb
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import Any, TextIO

from flinkpy.core.errors import FlinkpyError, UserCodeError
from flinkpy.operators.user_errors import is_engine, is_tool

ENGINE = ["flinkpy", "flinkpy.*"]
AT_NO_LINE = -1  # how bdb says that it does not step


class DebuggingEnded(FlinkpyError):
    """The user has left the debugger; the job that was replayed ends."""


Wanted = Callable[[], "str | None"]


class Debugger(pdb.Pdb):
    """Used in the thread of the task alone. ``stops`` counts how often it has stopped at a
    function."""

    def __init__(self, stdin: TextIO | None = None, stdout: TextIO | None = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout, skip=ENGINE, nosigint=True)
        self.reset()
        self.stops = 0
        self._wanted: Wanted = nowhere
        self._left_out: frozenset[CodeType] = frozenset()
        # a generator is called again at each result; it stops once
        self._stopped_in: FrameType | None = None
        self._stepping = False  # whether it is stepped through when it is called again

    def leave_out(self, functions: Iterable[Any]) -> None:
        """Never stops in these functions: key selectors, which are called beside the operator's
        own. Nor in those that the garbage collector calls, whenever it runs."""
        self._left_out = frozenset(
            code for code in map(_code_of, [*functions, *gc.callbacks]) if code is not None
        )

    @contextmanager
    def watching(self, wanted: Wanted) -> Iterator[None]:
        """Stops wherever the engine calls code of the user's and ``wanted()`` gives a text, which
        is shown. Raises DebuggingEnded if the user leaves the debugger."""
        self._wanted, before = wanted, sys.gettrace()
        sys.settrace(self._watch)
        try:
            yield
        except Exception as error:
            sys.settrace(before)
            if not self.quitting:
                self._show_error(error)
            if self.quitting:
                raise DebuggingEnded("the debugger was left") from None
            raise
        finally:
            sys.settrace(before)

    def set_continue(self) -> None:
        """Goes on to the next breakpoint, or to the next stop."""
        super().set_continue()
        sys.settrace(self._watch)

    def stop_here(self, frame: FrameType) -> bool:
        """Whether stepping stops in the frame: in the function where the debugger has stopped, and
        in what that calls."""
        caller: FrameType | None = frame
        while caller is not None and caller is not self._stopped_in:
            caller = caller.f_back
        return caller is not None and super().stop_here(frame)

    def dispatch_return(self, frame: FrameType, argument: object) -> Any:
        """The function has returned, or has yielded a result: goes on to the next stop."""
        given = super().dispatch_return(frame, argument)
        if frame is self._stopped_in:
            self._stepping = self.stoplineno != AT_NO_LINE
            self.set_continue()
        return given

    def _watch(self, frame: FrameType, event: str, argument: object) -> Any:
        """The trace function: called for each call of Python code."""
        if frame is self._stopped_in and self._stepping:
            self.set_trace(frame)
            return self.trace_dispatch
        text = self._wanted() if self._stops_at(frame) else None
        if text is None:
            return (
                self._break_in(frame, event, argument)
                if self.breaks and not is_engine(frame)
                else None
            )
        self.stops += 1
        self._stopped_in = frame
        self.message(text)
        self.set_trace(frame)
        return self.trace_dispatch

    def _break_in(self, frame: FrameType, event: str, argument: object) -> Any:
        """Looks for breakpoints that the user has set in the frame."""
        if not self.break_anywhere(frame):
            return None
        # it has not stopped yet, and would at the next line, as a debugger does that begins
        if self.botframe is None:
            self.botframe = frame.f_back
            self.set_continue()
        return self.trace_dispatch(frame, event, argument)

    def _stops_at(self, frame: FrameType) -> bool:
        code = frame.f_code
        if (
            frame is self._stopped_in
            or code in self._left_out
            or is_engine(frame)
            or is_tool(frame)
            or code.co_filename.startswith("<")
        ):
            # the last: code that was made from text, such as the methods of a namedtuple
            return False
        return frame.f_back is not None and is_engine(frame.f_back)

    def get_stack(
        self, frame: FrameType | None, trace: TracebackType | None
    ) -> tuple[list[tuple[FrameType, int]], int]:
        """The frames to show, and which of them is the current one: without those of the engine
        that lead to the user's function."""
        stack, current = super().get_stack(frame, trace)
        users = next(
            (
                at
                for at, (each, _) in enumerate(stack)
                if not is_engine(each) and at and is_engine(stack[at - 1][0])
            ),
            0,
        )
        return stack[users:], max(current - users, 0)

    def _show_error(self, error: Exception) -> None:
        """Opens the debugger where the user's code raised."""
        cause = (
            error.__cause__
            if isinstance(error, FlinkpyError) and error.__cause__ is not None
            else error
        )
        trace = _users_part(cause.__traceback__)
        if trace is None or isinstance(cause, (FlinkpyError, bdb.BdbQuit)):
            return
        where = ""
        # perhaps of an operator behind the debugged one, which called it
        if isinstance(error, UserCodeError):
            where = f" in {error.operator!r}" + (
                "" if error.record is None else f" for record {error.record}"
            )
        self.message(f"\n{type(cause).__name__}: {cause}, raised here{where}")
        self.reset()
        self.interaction(None, trace)


def _users_part(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from its first frame of the user's on; None if there is none."""
    while trace is not None and is_engine(trace.tb_frame):
        trace = trace.tb_next
    return trace


def nowhere() -> None:
    """Wanted by those who want no stop."""


def _code_of(function: object) -> CodeType | None:
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code if isinstance(code, CodeType) else None


@contextmanager
def untraced() -> Iterator[None]:
    """Nothing is traced in this thread meanwhile."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)
