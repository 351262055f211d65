"""The prompt of ``flinkpy sql``: statements of several lines, a history, completion of names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from flinkpy import __version__
from flinkpy.cli.failures import describe
from flinkpy.cli.prompt import IdleLine
from flinkpy.cli.sql_client.sql_completion import DELIMITERS, completions
from flinkpy.cli.sql_client.sql_session import Left, SqlSession
from flinkpy.cli.tell import tell
from flinkpy.sql.sql_errors import SqlParserError

PROMPT, CONTINUED = "flinkpy SQL> ", "           > "
HISTORY = Path("~/.flinkpy_sql_history")
HISTORY_LINES = 10_000
_COMMANDS = ("quit", "exit", "help", "clear")


class SqlPrompt:
    """Reads statements and runs them until the user leaves."""

    def __init__(self, session: SqlSession) -> None:
        self._session = session
        self._idle = IdleLine()
        self.has_failed = False

    def interact(self) -> None:
        """Reads from the terminal, or from a pipe without showing prompts."""
        if sys.stdin.isatty():
            tell(f"flinkpy {__version__} SQL; HELP; tells more, QUIT; or Ctrl-D leaves")
        with _line_editing(self._completions), self._idle.covering_output():
            try:
                while (text := self._read()) is not None:
                    self._run(text)
            except Left:
                pass

    def _read(self) -> str | None:
        """The next statement; None at the end of the input."""
        lines: list[str] = []
        while True:
            try:
                lines.append(self._line(CONTINUED if lines else PROMPT))
            except EOFError:
                return "\n".join(lines) if any(line.strip() for line in lines) else None
            except KeyboardInterrupt:
                tell("")
                lines.clear()
                continue
            text = "\n".join(lines)
            if not text.strip():
                lines.clear()
            elif is_complete(text):
                return text

    def _line(self, prompt: str) -> str:
        shown = prompt if sys.stdin.isatty() else ""
        with self._idle.while_typing(shown):
            return input(shown)

    def _run(self, text: str) -> None:
        try:
            self._session.run_script(text)
        except KeyboardInterrupt:
            tell("the statement was cancelled", err=True)
        except Left:
            raise
        except Exception as error:
            self.has_failed = True
            tell(describe(error), err=True)

    def _completions(self, begun: str) -> list[str]:
        return completions(self._session.tables, begun)


def is_complete(text: str) -> bool:
    """Whether a text ends with the semicolon of a statement, or is a command that needs none."""
    if text.strip().lower() in _COMMANDS:
        return True
    if not text.rstrip().endswith(";"):
        return False
    from flinkpy.sql.parsing.parse import ends_a_statement

    try:
        return ends_a_statement(text)
    except SqlParserError:
        return text.count("'") % 2 == 0  # what is no SQL is told; an open text goes on


@contextmanager
def _line_editing(completions: Callable[[str], list[str]]) -> Iterator[None]:
    """The tab key completes names, and lines are remembered, if there is a terminal."""
    try:
        import readline
    except ImportError:
        yield
        return
    if not sys.stdin.isatty():
        yield
        return
    history = HISTORY.expanduser()
    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    found: list[str] = []

    def complete(begun: str, number: int) -> str | None:
        if number == 0:
            found[:] = completions(begun)
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.set_completer_delims(DELIMITERS)
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(HISTORY_LINES)
    try:
        if history.exists():
            readline.read_history_file(history)
        yield
    finally:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)
        try:
            readline.write_history_file(history)
        except OSError:
            pass  # a home that cannot be written has no history
