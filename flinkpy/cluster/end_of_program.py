"""The end of a program that started jobs with ``execute_async`` and did not wait for them.

A job in the program's process, or in a cluster of its own, would end with the program: so the
program waits for it, and Ctrl-C cancels it. If such a job has failed and the program never asked
for its result, the program fails. For a job in a session, a message says that it continues. A
program that ended with an error does not wait, nor does an interactive prompt."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

from flinkpy.cluster.client import ClusterJob
from flinkpy.core.errors import FlinkpyError, JobCancelledError
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.program.exit_codes import INTERRUPTED, READER_GONE
from flinkpy.core.program.launch_context import has_failed
from flinkpy.core.source_places import running_ipython

_background_jobs: list[ClusterJob] = []
_is_registered = False


def register_background_job(job: ClusterJob) -> None:
    """Registers a job for which the program does not wait, so that the end of the program may."""
    global _is_registered
    _background_jobs.append(job)
    if sys.version_info[:2] == (3, 12) and job.ends_with_program:
        # Python 3.12 starts no thread once the program's last line has run, and slots need some
        job.wait_until_deployed()
    if not _is_registered:
        _is_registered = True
        # before the interpreter shuts down thread pools, which the job may need; ``atexit`` runs
        # after that
        with contextlib.suppress(RuntimeError):  # the interpreter already shuts down
            getattr(threading, "_register_atexit", atexit.register)(_at_exit)


def await_background_jobs() -> None:
    """Waits for the jobs that end with the program, and reports where the others run. Raises the
    error of the first job that failed."""
    first: FlinkpyError | None = None
    for job in _take_unheard():
        if not job.ends_with_program:
            print(job.runs_on, file=sys.stderr)
            continue
        try:
            job.result()
        except JobCancelledError:
            pass
        except FlinkpyError as error:
            first = first or error
    if first is not None:
        raise first


def forget_background_jobs() -> None:
    """Forgets all jobs: another program begins in this process."""
    _background_jobs.clear()


def report_abandoned_jobs() -> None:
    """Reports which jobs end with the program, which has failed."""
    for job in _take_unheard():
        if job.ends_with_program and not JOB.is_terminal(job.status()):
            print(f"job {job.name!r} still ran, and ends with the program", file=sys.stderr)


def _take_unheard() -> list[ClusterJob]:
    """The jobs that run, and those whose failure the program has not seen."""
    taken, _background_jobs[:] = list(_background_jobs), []
    return [job for job in taken if not job.end_was_told and _has_news(job)]


def _has_news(job: ClusterJob) -> bool:
    try:
        state = job.status()
    except FlinkpyError:
        return False  # its session is gone, and the job with it
    return (not JOB.is_terminal(state) and state is not JobState.CANCELLING) or (
        state is JobState.FAILED and job.ends_with_program
    )


def _at_exit() -> None:
    if hasattr(sys, "ps1") or running_ipython() is not None:
        return
    if has_failed():
        report_abandoned_jobs()
        return
    try:
        await_background_jobs()
    except SystemExit:  # standard error is closed
        atexit.register(_exit_with, READER_GONE)
    except KeyboardInterrupt:
        print("interrupted: the jobs the program has begun were cancelled", file=sys.stderr)
        atexit.register(_exit_with, INTERRUPTED)
    except FlinkpyError as error:
        print("\n".join(error._render_traceback_()), file=sys.stderr)
        atexit.register(_exit_with, 1)


def _exit_with(code: int) -> None:
    """Called first at exit. It calls the other exit functions itself, as the interpreter would exit
    with 0 after them."""
    atexit.unregister(_exit_with)
    atexit._run_exitfuncs()
    with contextlib.suppress(OSError):  # its reader is gone
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background_jobs.clear)  # they are the parent's
