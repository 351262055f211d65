"""``flinkpy run``: gathers the options, runs the program, and turns an error into a short message
and an exit code."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flinkpy.cli.failures import describe
from flinkpy.cli.script import exit_code, exit_message, find_module, find_script, run_program
from flinkpy.cli.tell import tell
from flinkpy.cluster.deployment_mode import Mode, choose_mode
from flinkpy.cluster.end_of_program import (
    await_background_jobs,
    forget_background_jobs,
    report_abandoned_jobs,
)
from flinkpy.cluster.launch import choose_target, submitted_jobs
from flinkpy.cluster.option_sources import load_settings, parse_definitions
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.checkpointing import RECOVERY_IGNORE_UNCLAIMED, RECOVERY_PATH
from flinkpy.core.options.engine import ATTACHED, PARALLELISM, PYFLINK_IMPORTS, TARGET, Target
from flinkpy.core.options.schema import read
from flinkpy.core.program.exit_codes import INTERRUPTED, SIGNALLED
from flinkpy.core.program.launch_context import (
    FORGOTTEN_EXECUTE,
    PlanListener,
    ProgramAborted,
    is_pending,
    set_launch_context,
)
from flinkpy.core.program.python_files import on_path


class Terminated(KeyboardInterrupt):
    """The program was interrupted by SIGTERM."""


def recovery(path: str | None, allow_non_restored_state: bool) -> list[str]:
    """The definitions that have a job start from a checkpoint.

    >>> recovery("/tmp/checkpoints/job", False)
    ['execution.state-recovery.path=/tmp/checkpoints/job']
    """
    found = [] if path is None else [f"{RECOVERY_PATH.key}={path}"]
    return [*found, f"{RECOVERY_IGNORE_UNCLAIMED.key}=true"] if allow_non_restored_state else found


def run_job(
    script: str,
    arguments: Sequence[str],
    *,
    target: str | None,
    parallelism: int | None,
    definitions: Sequence[str],
    detached: bool,
    is_module: bool = False,
    ends_with_program: bool = False,
    pyflink: bool = False,
    conf: Path | None,
    verbose: bool,
) -> int:
    """Runs the program, a script or a module; returns the exit code."""

    def run(path: Path) -> None:
        settings = gather(conf, definitions, parallelism, target, pyflink=pyflink)
        if (
            ends_with_program
            and choose_target(settings) is Target.RAY
            and choose_mode(settings, os.environ) is Mode.SESSION
        ):
            raise ConfigurationError(
                "-sae: a session does not end with a program; -t ray-application "
                "runs the job in a cluster that does, however the "
                "program ends"
            )
        if detached:
            if choose_target(settings) is Target.EMBEDDED:
                raise ConfigurationError(
                    "an embedded job lives in this process and ends with it, so it cannot be "
                    "detached: add -t ray or drop -d"
                )
            settings[ATTACHED.key] = False
        set_launch_context(settings)
        forget_background_jobs()
        with _terminable(), program_imports(settings):
            try:
                run_program(path, arguments, module)
            except SystemExit:
                await_background_jobs()
                raise
            except BaseException:
                report_abandoned_jobs()
                raise
            await_background_jobs()
        if is_pending():
            tell(f"{path.name} {FORGOTTEN_EXECUTE}", err=True)
        if detached:
            for job in submitted_jobs():
                tell(f"submitted {job.name!r}, job id {job.job_id}")

    module = script if is_module else None
    return guarded(program_of(script, is_module, conf, definitions), run, verbose)


def program_of(
    name: str, is_module: bool, conf: Path | None, definitions: Sequence[str]
) -> Callable[[], Path]:
    """Finds the program's file when it is called."""

    def find() -> Path:
        if not is_module:
            return find_script(name)
        with on_path(gather(conf, definitions, None, None)):
            return find_module(name)

    return find


def run_until_execute(
    path: Path,
    arguments: Sequence[str],
    settings: Mapping[str, Any],
    take: PlanListener,
    module: str | None = None,
) -> None:
    """Runs the program up to its first ``execute``, which submits nothing: ``take`` gets its graph.
    The program may never come there."""
    set_launch_context(settings, take)
    try:
        with program_imports(settings):
            run_program(path, arguments, module)
    except ProgramAborted:
        pass


@contextmanager
def program_imports(settings: Mapping[str, Any]) -> Iterator[None]:
    """While the program runs, it finds what ``python.files`` names, and flinkpy as ``pyflink`` if
    the options say so."""
    with on_path(settings), _pyflink_names(settings):
        yield


@contextmanager
def _pyflink_names(settings: Mapping[str, Any]) -> Iterator[None]:
    """While the program runs, ``import pyflink`` means flinkpy, if the options say so. Of the
    engine's own messages only warnings and errors are shown: Flink's go to files of the JVM, so
    such programs turn Python's logging on for themselves."""
    from flinkpy.common.pyflink_imports import install, is_installed, uninstall

    if not read(settings, PYFLINK_IMPORTS) or is_installed():
        yield
        return
    engine = logging.getLogger("flinkpy")
    level = engine.level
    if level == logging.NOTSET:
        engine.setLevel(logging.WARNING)
    install()
    try:
        yield
    finally:
        uninstall()
        engine.setLevel(level)


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the program like Ctrl-C: an attached job is cancelled, and does not continue
    unattended. A child that the program forks ends at once, as it would under plain Python."""

    def interrupt(number: int, frame: object) -> None:
        raise Terminated

    def leave_alone() -> None:
        if signal.getsignal(signal.SIGTERM) is interrupt:
            signal.signal(signal.SIGTERM, before)

    before = signal.signal(signal.SIGTERM, interrupt)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=leave_alone)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def gather(
    conf: Path | None,
    definitions: Sequence[str],
    parallelism: int | None,
    target: str | None,
    *,
    pyflink: bool = False,
) -> dict[str, Any]:
    """Returns the options of file, environment and command line; ``-p``, ``-t`` and ``--pyflink``
    are short for their ``-D``."""
    overrides: dict[str, Any] = dict(parse_definitions(definitions))
    if parallelism is not None:
        overrides[PARALLELISM.key] = parallelism
    if target is not None:
        overrides[TARGET.key] = target
    if pyflink:
        overrides[PYFLINK_IMPORTS.key] = True
    return load_settings(conf=conf, overrides=overrides)


def guarded(find: Callable[[], Path], run: Callable[[Path], None], verbose: bool) -> int:
    """Finds the program's file and runs it through ``run``; reports errors briefly on standard
    error. Returns the exit code."""
    path: Path | None = None
    try:
        path = find()
        run(path)
    except KeyboardInterrupt as interrupt:
        return SIGNALLED + signal.SIGTERM if isinstance(interrupt, Terminated) else INTERRUPTED
    except SystemExit as end:
        message = exit_message(end)
        if message is not None:
            tell(message, err=True)
        return exit_code(end)
    except (
        BaseException
    ) as error:  # also exceptions of the program that do not derive from Exception
        tell(describe(error, path, verbose=verbose), err=True)
        return 1
    finally:
        set_launch_context(None)
    return 0
