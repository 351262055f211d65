"""Runs ``flinkpy sql``: gathers the options, then the script, the statements or the prompt."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from flinkpy.cli.failures import describe
from flinkpy.cli.run import gather
from flinkpy.cli.sql_client.sql_session import Left, SqlSession, read_script
from flinkpy.cli.tell import tell
from flinkpy.cluster.end_of_program import await_background_jobs, forget_background_jobs
from flinkpy.core.program.exit_codes import INTERRUPTED
from flinkpy.core.program.launch_context import set_launch_context


def run_sql(
    *,
    statements: str | None,
    script: str | None,
    first: str | None,
    target: str | None,
    parallelism: int | None,
    definitions: Sequence[str],
    conf: Path | None,
) -> int:
    """Returns the exit code: 1 if a statement failed, but for those that were typed."""
    try:
        settings = gather(conf, definitions, parallelism, target)
        set_launch_context(settings)
        forget_background_jobs()
        session = SqlSession(settings)
        if first is not None:
            session.run_script(read_script(first), first)
        if script is not None:
            session.run_script(read_script(script), script)
        if statements is not None:
            session.run_script(statements)
        if script is None and statements is None:
            return _interact(session)
        await_background_jobs()
    except Left:
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        tell(describe(error), err=True)
        return 1
    finally:
        set_launch_context(None)
    return 0


def _interact(session: SqlSession) -> int:
    from flinkpy.cli.shell import leave
    from flinkpy.cli.sql_client.sql_prompt import SqlPrompt

    prompt = SqlPrompt(session)
    prompt.interact()
    leave()
    return int(prompt.has_failed and not sys.stdin.isatty())
