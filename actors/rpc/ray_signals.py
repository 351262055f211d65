"""SIGTERM in a process of Ray's."""

from __future__ import annotations

from collections.abc import Callable

from flinkpy.core.secrets.engine_logs import engine_logger

log = engine_logger("flinkpy.rpc")


def on_termination(action: Callable[[], None]) -> None:
    """Calls ``action``, which must return at once, when this process of Ray's gets SIGTERM.

    Ray has a handler of its own, which ends the process once all calls under way have returned;
    some never do. Python takes another handler only in the main thread, in which an actor runs
    nothing. So this exchanges what Ray's handler calls; with a Ray that has no such function,
    SIGTERM does what Ray makes of it."""
    from ray._private import worker

    name = "raise_sys_exit_with_custom_error_message"
    if hasattr(worker, name):
        setattr(worker, name, lambda *args, **kwargs: action())
    else:
        log.warning(
            "SIGTERM may not end this process, as this version of Ray handles it in another way"
        )
