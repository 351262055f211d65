"""How this program was launched: the options that ``flinkpy run`` gathered for it.

The command line fills this in before the user's script runs; the script's environments read it. A
child process (``ray job submit`` starts one) finds the options in the environment variable
``FLINKPY_CONF``, as JSON. The options of the configuration file, the environment and ``-D`` are
merged already; those the program sets in code override them. Under plain ``python`` there are none.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from flinkpy.core.errors import ConfigurationError

VARIABLE = "FLINKPY_CONF"

PlanListener = Callable[[Any, Mapping[str, Any]], None]

_configuration: dict[str, Any] | None = None
_plan_listener: PlanListener | None = None
_pending = False
_watches_end = False

FORGOTTEN_EXECUTE = "defined streams and ended without execute(), so they did not run"


class ProgramAborted(BaseException):
    """Ends a program at its first ``execute`` when only its plan is wanted. Not an Exception: the
    user's ``except`` does not stop it."""


def set_launch_context(
    configuration: Mapping[str, Any] | None, plan_listener: PlanListener | None = None
) -> None:
    """Sets the options that programs in this process start from; None removes them.

    With a ``plan_listener``, ``execute`` does not submit: it calls ``plan_listener(stream_graph,
    configuration)`` and raises ProgramAborted."""
    global _configuration, _plan_listener, _pending
    _pending = False
    _configuration = None if configuration is None else dict(configuration)
    _plan_listener = plan_listener


def launched_by_command_line() -> bool:
    """Whether a command line gathered the options, here or in a parent process."""
    return _configuration is not None or VARIABLE in os.environ


def launch_configuration() -> dict[str, Any]:
    """The options the command line gathered; empty under plain ``python``.

    Raises ConfigurationError when FLINKPY_CONF is not a JSON object.
    """
    if _configuration is not None:
        return dict(_configuration)
    text = os.environ.get(VARIABLE)
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(
            f"the environment variable {VARIABLE} is not JSON: {error}"
        ) from None
    if not isinstance(found, dict):
        raise ConfigurationError(
            f"the environment variable {VARIABLE} must hold a JSON object of options, this is "
            f"{text!r:.80}"
        )
    return found


def note_defined(where: str | None = None) -> None:
    """Notes that the program has recorded an operator, at the place ``where`` in its source."""
    global _pending
    _pending = True
    _watch_end(where)


def restore_pending(was_pending: bool) -> None:
    """What was recorded since then is none that the program has to execute."""
    global _pending
    _pending = was_pending


def _watch_end(where: str | None) -> None:
    """Under ``python job.py``, arranges that a forgotten ``execute()`` is reported at exit,
    provided the script itself recorded the operator."""
    global _watches_end
    # Read now: Python removes it before exit handlers run
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if (
        not _watches_end
        and _configuration is None
        and script is not None
        and where is not None
        and where.startswith(f"{script}:")
    ):
        _watches_end = True
        atexit.register(_tell_forgotten_execute, os.path.basename(script))


def _tell_forgotten_execute(script: str) -> None:
    if _pending and not has_failed() and not sys.flags.interactive:
        print(f"{script} {FORGOTTEN_EXECUTE}", file=sys.stderr)


def has_failed() -> bool:
    """Whether the program is ending with an error; then a forgotten ``execute()`` is not worth
    reporting."""
    return getattr(sys, "last_value", None) is not None


def note_used() -> None:
    """Notes that the recorded operators were submitted, or drawn as a plan."""
    global _pending
    _pending = False


def is_pending() -> bool:
    """Whether the program recorded operators after its last job; at its end that means a forgotten
    ``execute()``."""
    return _pending


def plan_listener() -> PlanListener | None:
    """The listener that gets the plan instead of a job being submitted; None if there is none."""
    return _plan_listener
