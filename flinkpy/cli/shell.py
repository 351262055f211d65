"""``flinkpy shell``: a prompt with an environment, the common names, and Spark if it is installed.
It uses IPython if that is installed."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from flinkpy import __version__
from flinkpy.cli.prompt import Prompt
from flinkpy.cli.run import gather, program_imports
from flinkpy.cli.script import exit_code, exit_message
from flinkpy.cli.tell import tell
from flinkpy.cluster.launch import choose_target, submitted_jobs
from flinkpy.core.errors import FlinkpyError
from flinkpy.core.lifecycles import JOB
from flinkpy.core.options.engine import Target
from flinkpy.core.program.launch_context import set_launch_context

CANCEL_TIMEOUT_S = 10.0


def open_shell(
    *,
    target: str | None,
    parallelism: int | None,
    definitions: Sequence[str],
    pyflink: bool,
    conf: Path | None,
    plain: bool,
) -> int:
    """Runs the prompt. Returns the exit code, which is 1 if lines from a file or pipe failed."""
    settings = gather(conf, definitions, parallelism, target, pyflink=pyflink)
    set_launch_context(settings)
    try:
        with _as_main() as namespace, program_imports(settings):
            fill(namespace)
            return _interact(namespace, banner(settings, namespace), plain)
    finally:
        leave()
        set_launch_context(None)


def fill(namespace: dict[str, Any]) -> None:
    """Adds the names a program begins with: ``env``, ``col``, ``lit``, those of streams, value
    types and windows, and ``spark``."""
    import flinkpy.common
    import flinkpy.datastream
    import flinkpy.datastream.window
    from flinkpy.columns import expression_functions as expressions

    for module in (flinkpy.datastream.window, flinkpy.datastream, flinkpy.common):
        namespace.update({name: getattr(module, name) for name in module.__all__})
    namespace.update(
        col=expressions.col,
        lit=expressions.lit,
        env=flinkpy.datastream.StreamExecutionEnvironment.get_execution_environment(),
    )
    if has_spark():
        namespace["spark"] = LazySpark(lambda session: namespace.update(spark=session))


def has_spark() -> bool:
    """Whether the packages of the extra ``flinkpy[spark]`` are installed; imports nothing."""
    return all(importlib.util.find_spec(name) is not None for name in ("pyspark", "raydp"))


class LazySpark:
    """Stands for the Spark session until it is first used: then Spark starts, and ``started`` is
    called."""

    def __init__(
        self, started: Callable[[Any], None], start: Callable[[], Any] | None = None
    ) -> None:
        self.__dict__.update(_started=started, _start=start or _start_spark, _session=None)

    def _spark_session(self) -> Any:
        """Returns the session itself; ``stream.to_spark(spark)`` calls it."""
        if self._session is None:
            self.__dict__["_session"] = self._start()
            self._started(self._session)
        return self._session

    def __getattr__(self, name: str) -> Any:
        # The prompt itself asks for such names (to show it, to complete): they do not start Spark
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._spark_session(), name)

    def __repr__(self) -> str:
        return (
            "<Spark: starts on Ray when it is used>"
            if self._session is None
            else repr(self._session)
        )


def _start_spark() -> Any:
    from flinkpy.spark import spark_session

    tell("starting Spark on Ray", err=True)
    return spark_session()


def banner(settings: dict[str, Any], namespace: dict[str, Any]) -> str:
    """The text above the first prompt."""
    where = "in this process" if choose_target(settings) is Target.EMBEDDED else "on Ray"
    return "\n".join(
        [
            f"flinkpy {__version__}, Python {sys.version.split()[0]}; jobs run {where}",
            (
                f"env, col, lit{', spark' if 'spark' in namespace else ''} and the names of "
                "flinkpy.datastream and flinkpy.common are there"
            ),
            "  env.from_collection([1, 2, 3]).map(lambda x: x * 2).show()",
        ]
    )


@contextmanager
def _as_main() -> Iterator[dict[str, Any]]:
    """Runs the typed code in a ``__main__`` module of its own, so that functions and classes are
    sent to the workers by value."""
    before, module = sys.modules["__main__"], ModuleType("__main__")
    module.__dict__["__builtins__"] = __builtins__
    path = list(sys.path)
    sys.modules["__main__"] = module
    sys.path.insert(0, "")  # the current folder, as at Python's own prompt
    try:
        yield module.__dict__
    finally:
        sys.modules["__main__"] = before
        sys.path[:] = path


def _interact(namespace: dict[str, Any], text: str, plain: bool) -> int:
    if not plain and sys.stdin.isatty() and importlib.util.find_spec("IPython") is not None:
        return _ipython(namespace, text)
    prompts = {name: getattr(sys, name, None) for name in ("ps1", "ps2")}
    sys.ps1, sys.ps2 = (">>> ", "... ") if sys.stdin.isatty() else ("", "")
    prompt = Prompt(namespace)
    try:
        prompt.interact(text, "")
    except SystemExit as end:
        message = exit_message(end)
        if message is not None:
            tell(message, err=True)
        return exit_code(end)
    finally:
        for name, value in prompts.items():
            setattr(sys, name, value) if value is not None else delattr(sys, name)
    return int(prompt.has_failed and not sys.stdin.isatty())


def _ipython(namespace: dict[str, Any], text: str) -> int:
    import IPython
    from traitlets.config import Config

    config = Config()
    config.TerminalInteractiveShell.banner1 = text + "\n"
    config.TerminalIPythonApp.display_banner = True
    IPython.start_ipython(argv=[], user_ns=namespace, config=config)
    return 0


def leave() -> None:
    """Reports what happens to jobs that still run: jobs in this process are cancelled, jobs in a
    session on Ray continue."""
    for job in submitted_jobs():
        try:
            if JOB.is_terminal(job.status()):
                continue
            if job.ends_with_program:
                job.cancel()
                tell(f"cancelled job {job.name!r}, which ran in this process", err=True)
            else:
                tell(job.runs_on, err=True)
        except FlinkpyError:
            pass  # its session is gone, and the job with it
