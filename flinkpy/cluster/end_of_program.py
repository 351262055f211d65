"""The end of a program that began jobs with ``execute_async`` and did not wait for them.

A job that lives in the program, or in a cluster of its own, would end with it: so it is awaited, and Ctrl-C cancels it. Of a job in a session it is
told that it runs on. A program that ended with an error, which is on the screen by then, waits for nothing, and at a prompt nobody would expect it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading

from flinkpy.cluster.client import ClusterJob
from flinkpy.core.errors import FlinkpyError, JobCancelledError
from flinkpy.core.launch_context import has_failed
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.places import running_ipython

_begun: list[ClusterJob] = []
_is_registered = False


def begun(job: ClusterJob) -> None:
    """The program goes on while the job runs, and may end before it."""
    global _is_registered
    _begun.append(job)
    if not _is_registered:
        _is_registered = True
        # before the interpreter takes thread pools away, which the job may need; ``atexit`` comes behind that
        with contextlib.suppress(RuntimeError):  # the end has come already
            getattr(threading, "_register_atexit", atexit.register)(_at_exit)


def see_off() -> None:
    """Waits for the jobs that end with the program, and says of the others where they run. Raises what made the first of them fail."""
    first: FlinkpyError | None = None
    for job in _still_running():
        if not job.ends_with_program:
            print(f"job {job.name!r} runs on in the session on Ray; to end it: {job.cancelled_by}", file=sys.stderr)
            continue
        try:
            job.result()
        except JobCancelledError:
            pass
        except FlinkpyError as error:
            first = first or error
    if first is not None:
        raise first


def forget() -> None:
    """Another program begins in this process."""
    _begun.clear()


def let_go() -> None:
    """The program failed: says which jobs end with it."""
    for job in _still_running():
        if job.ends_with_program:
            print(f"job {job.name!r} still ran, and ends with the program", file=sys.stderr)


def _still_running() -> list[ClusterJob]:
    taken, _begun[:] = list(_begun), []
    return [job for job in taken if _is_running(job)]


def _is_running(job: ClusterJob) -> bool:
    try:
        state = job.status()
    except FlinkpyError:
        return False  # its session is gone, and it with it
    return not JOB.is_terminal(state) and state is not JobState.CANCELLING


def _at_exit() -> None:
    if hasattr(sys, "ps1") or running_ipython() is not None:
        return
    if has_failed():
        let_go()
        return
    try:
        see_off()
    except SystemExit:  # nobody reads what they print
        pass
    except KeyboardInterrupt:
        print("interrupted: the jobs the program has begun were cancelled", file=sys.stderr)
    except FlinkpyError as error:
        print("\n".join(error._render_traceback_()), file=sys.stderr)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begun.clear)  # they are the parent's
