"""A Python prompt that names each input, shows errors briefly, and keeps the output of jobs apart
from the line being typed."""

from __future__ import annotations

import code
import io
import linecache
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from flinkpy.core.program.prompts import interrupted, shows_errors_plainly


class Prompt(code.InteractiveConsole):
    """Each input has a file name of its own, ``<input 3>``, so that errors can show its lines."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        super().__init__(namespace)
        self.has_failed = False
        self._number = 1
        self._idle = IdleLine()

    def runsource(self, source: str, filename: str = "<input>", symbol: str = "single") -> bool:
        name = f"<input {self._number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        is_incomplete = super().runsource(source, name, symbol)
        self._number += not is_incomplete
        return is_incomplete

    def raw_input(self, prompt: str = "") -> str:
        with self._idle.while_typing(prompt):
            return super().raw_input(prompt)

    def showtraceback(self) -> None:
        """Shows flinkpy's errors, and an interrupted job, briefly; other errors as Python does."""
        self.has_failed = True
        error = sys.exc_info()[1]
        interrupted(error)
        render = getattr(error, "_render_traceback_", None)
        if error is None or not shows_errors_plainly():
            super().showtraceback()
        else:
            sys.last_type = type(error)
            sys.last_value = error
            sys.last_traceback = error.__traceback__
            self.write(
                "".join(_python_traceback(error)) if render is None else "\n".join(render()) + "\n"
            )

    def showsyntaxerror(self, *arguments: Any, **options: Any) -> None:
        self.has_failed = True
        super().showsyntaxerror(*arguments, **options)

    def interact(self, banner: str | None = None, exitmsg: str | None = None) -> None:
        with _completing(self.locals), self._idle.covering_output():
            super().interact(banner, exitmsg)


def _python_traceback(error: BaseException) -> list[str]:
    """Formats the error as Python does, from the input's own frame on."""
    own = error.__traceback__ and error.__traceback__.tb_next
    lines = traceback.format_exception(type(error), error, own)
    suggestion = _suggestion(error.with_traceback(own))
    if suggestion and suggestion not in lines[-1]:
        lines[-1] = lines[-1].rstrip("\n") + suggestion + "\n"
    return lines


def _suggestion(error: BaseException) -> str:
    """Returns ``. Did you mean: …?``, which before Python 3.12 only the interpreter's own hook
    computes."""
    told, before = io.StringIO(), sys.stderr
    sys.stderr = told
    try:
        sys.__excepthook__(type(error), error, error.__traceback__)
    finally:
        sys.stderr = before
    _, found, name = told.getvalue().rstrip().rpartition(". Did you mean: ")
    return found + name if found and "\n" not in name else ""


class IdleLine:
    """The line that the user is typing. Output of other threads goes above it: the line is wiped,
    and drawn again after the output."""

    def __init__(self) -> None:
        self.prompt: str | None = None

    @contextmanager
    def while_typing(self, prompt: str) -> Iterator[None]:
        self.prompt = prompt
        try:
            yield
        finally:
            self.prompt = None

    @contextmanager
    def covering_output(self) -> Iterator[None]:
        """Standard output and error go through here if they are a terminal."""
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            yield
            return
        before = sys.stdout, sys.stderr
        covers = Above(before[0], self), Above(before[1], self)
        sys.stdout, sys.stderr = covers
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            for cover in covers:
                cover.give_out()

    def typed(self) -> str:
        """Returns what the user has typed so far."""
        readline = sys.modules.get("readline")
        return readline.get_line_buffer() if readline is not None else ""


class Above:
    """An output to the terminal above the line being typed. It writes whole lines only, since
    ``print`` writes a line in pieces."""

    def __init__(self, under: TextIO, line: IdleLine) -> None:
        self._under, self._line = under, line
        self._begun: dict[threading.Thread, str] = {}  # by thread: its unfinished line
        self._lock = threading.Lock()

    def write(self, text: str) -> int:
        if threading.current_thread() is threading.main_thread():
            return self._under.write(text)
        with self._lock:
            whole = self._begun.pop(threading.current_thread(), "") + text
            if self._line.prompt is not None:
                whole = self._above(whole)
            self._under.write(whole)
            self._under.flush()
        return len(text)

    def _above(self, text: str) -> str:
        """Returns the whole lines of the text, and the prompt drawn again after them. Keeps the
        rest until its line is whole."""
        lines, newline, begun = text.rpartition("\n")
        if begun:
            self._begun[threading.current_thread()] = begun
        return f"\r\x1b[K{lines}\n{self._line.prompt}{self._line.typed()}" if newline else ""

    def give_out(self) -> None:
        """Prints the rest of an unfinished line."""
        with self._lock:
            for text in self._begun.values():
                self._under.write(text + "\n")
            self._begun.clear()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._under, name)


@contextmanager
def _completing(namespace: Any) -> Iterator[None]:
    """The tab key completes names, if there is a terminal."""
    try:
        import readline
        import rlcompleter
    except ImportError:
        yield
        return
    before = readline.get_completer()
    readline.set_completer(rlcompleter.Completer(namespace).complete)
    if sys.stdin.isatty():
        readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(before)
