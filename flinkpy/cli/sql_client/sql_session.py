"""The session of ``flinkpy sql``: an environment of tables, and the statements that run in it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flinkpy.cli.sql_client.shown_results import show_result
from flinkpy.cli.tell import tell
from flinkpy.core.errors import ConfigurationError, JobExecutionError, ProgramError
from flinkpy.sql.sql_errors import Span, SqlError
from flinkpy.table import EnvironmentSettings, TableEnvironment

if TYPE_CHECKING:
    from flinkpy.sql.syntax.statements import Statement

HELP = """Statements end with a semicolon and may have several lines.
  SELECT ...;                      runs a query; Ctrl-C ends it
  INSERT INTO t SELECT ...;        runs a job; in BATCH it is waited for
  CREATE TABLE t (...) WITH (...); SHOW TABLES; DESCRIBE t; EXPLAIN SELECT ...;
  SET 'execution.runtime-mode' = 'streaming';
  SET 'sql-client.execution.result-mode' = 'table';   (or tableau, changelog)
  SHOW JOBS; STOP JOB '...' WITH SAVEPOINT; SHOW FUNCTIONS; SET; RESET;
  QUIT;                            leaves, as Ctrl-D does"""
RUNTIME_MODE = "execution.runtime-mode"


class Left(Exception):
    """The user has left the prompt, or the script has ended early."""


class SqlSession:
    """Runs statements and shows their results. Without another word the mode is BATCH."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        is_batch = str(settings.get(RUNTIME_MODE, "BATCH")).upper().endswith("BATCH")
        self.tables = TableEnvironment.create(
            EnvironmentSettings.in_batch_mode()
            if is_batch
            else EnvironmentSettings.in_streaming_mode()
        )

    def run_script(self, text: str, name: str | None = None) -> None:
        """Runs the statements of a text. Raises the first error; one of a statement names its line
        in the text."""
        from flinkpy.sql.parsing.parse import parse_script

        begin = 0
        for piece in parse_script(text):
            begin = text.index(piece.text, begin)
            try:
                self.run(piece.statement, piece.text)
            except SqlError as error:
                raise _in_script(error, text, begin) from None
            except (ProgramError, ConfigurationError) as error:
                where = "" if name is None else f" of {name}"
                raise ProgramError(f"line {piece.line}{where}: {error}") from error
            except JobExecutionError:
                if name is not None:  # the error goes on to say what happened
                    tell(f"line {piece.line} of {name}:", err=True)
                raise
            begin += len(piece.text)

    def run(self, statement: Statement, text: str) -> None:
        """Runs one statement and shows its result."""
        from flinkpy.sql.syntax.statements import Leave, QueryStatement

        if isinstance(statement, Leave):
            self._command(statement.command)
            return
        result = self.tables.execute(statement, text)
        job = result.get_job_client()
        if job is not None and not isinstance(statement, QueryStatement):
            if not self._waits:
                tell(f"submitted job {job.get_job_id()}")
                return
            result.wait()
            tell("the job has ended")
            return
        config = self.tables.get_config()
        show_result(result, config.options.text("sql-client.execution.result-mode"))

    @property
    def _waits(self) -> bool:
        """Whether an INSERT is waited for: in BATCH, as the next statement may read its rows."""
        config = self.tables.get_config()
        return config.is_batch or bool(config.options.value("table.dml-sync"))

    def _command(self, command: str) -> None:
        if command in ("QUIT", "EXIT"):
            raise Left
        if command == "HELP":
            tell(HELP)
        if command == "CLEAR":
            tell("\x1b[2J\x1b[H")


def read_script(path: str) -> str:
    """The text of a script. Raises ProgramError if it cannot be read."""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ProgramError(f"the script {path} cannot be read: {error}") from error


def _in_script(error: SqlError, text: str, begin: int) -> SqlError:
    """The error with its place in the whole script."""
    span = error.span
    return type(error)(error.problem, text, Span(span.start + begin, span.end + begin))
