"""Connects this process to a Ray cluster: the one it is connected to, the one that an address
names, the one on this machine, or else a new one on this machine, which outlives the process."""

from __future__ import annotations

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ray

from flinkpy.core.errors import ConfigurationError, ResourceUnavailableError
from flinkpy.core.files.users_files import locked
from flinkpy.core.options.engine import RAY_ADDRESS
from flinkpy.core.options.schema import read

AUTO = "auto"
REACHABLE_TIMEOUT_S = 3.0
START_TIMEOUT_S = 60.0


def connect_ray(configuration: Mapping[str, Any], *, start: bool) -> None:
    """Connects. Raises ResourceUnavailableError when there is no cluster to connect to, in one line
    that says what to do."""
    if ray.is_initialized():
        _end_on_sigterm(signal.getsignal(signal.SIGTERM))
        return
    address = read(configuration, RAY_ADDRESS)
    # set and empty is not set, as for Ray
    address = os.environ.get("RAY_ADDRESS") or AUTO if address == AUTO else address
    if address != AUTO:
        _require_reachable(address)
        _init(address)
    elif (local := _local_address()) is not None:
        _init(local)
    elif start:
        start_local_ray()
    else:
        raise ResourceUnavailableError(
            "no Ray cluster runs on this machine, so no jobs; `flinkpy run -t ray` starts "
            "one, "
            f"-D {RAY_ADDRESS.key}=HOST:PORT names one elsewhere"
        )


def _local_address() -> str | None:
    """Returns the cluster on this machine, if one answers. (Ray remembers one that has died, and
    would wait for it for minutes.)"""
    from ray._private import services

    try:
        address = services.canonicalize_bootstrap_address(AUTO)
    except ConnectionError:
        return None
    return address if address is not None and _unreachable(address) is None else None


def _init(address: str) -> None:
    # log_to_driver off: a session's workers serve many programs; what the tasks of a job print
    # comes another way (task_output).
    if _is_this_machine(address.rpartition(":")[0]):
        _use_own_token()
    try:
        with _own_signal_handler():
            # No namespace, so one of its own: RayDP's master has the same name in every program.
            ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except ConnectionError as error:
        raise ResourceUnavailableError(
            f"the Ray cluster at {address} does not answer: "
            f"{_first_line(error)}{_token_hint(error)}"
        ) from error
    except Exception as error:
        # RuntimeError for other versions of Python or Ray, AuthenticationError, and what gRPC
        # raises
        raise ResourceUnavailableError(
            f"cannot join the Ray cluster at {address}: {_first_line(error)}{_token_hint(error)}"
        ) from error


@contextmanager
def _own_signal_handler() -> Iterator[None]:
    """Keeps the program's own signal handler in force; Ray would replace it."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    _end_on_sigterm(before)


def _end_on_sigterm(handler: object) -> None:
    """SIGTERM, which `ray job stop` sends, ends the program normally: with its job cancelled. Ray's
    library would end the process at once, by a handler that Python does not know of; so the one
    that Python knows is set again."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(
            signal.SIGTERM, handler if callable(handler) or handler is signal.SIG_IGN else _exit
        )


def _exit(number: int, frame: object) -> None:
    raise SystemExit(128 + number)  # the exit code that shells use


def _token_hint(error: BaseException | None) -> str:
    """Returns what to do when Ray asks for a token; only the cause of the error's cause shows
    that."""
    while error is not None:
        if "Authentication" in f"{type(error).__name__} {error}":
            return (
                "; it asks for a token: set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or "
                "~/.ray/auth_token to the token of that cluster"
            )
        error = error.__cause__
    return ""


def _use_own_token() -> None:
    """Uses this user's token, if there is one, for a cluster on this machine; Ray itself does so
    only for ``auto``. (Never for other machines: whoever listens there would get the token.)"""
    try:
        from ray._private.authentication.authentication_token_setup import (
            maybe_enable_token_auth_if_token_available,
        )
    except ImportError:  # a Ray without tokens, or with a better way
        return
    with _ray_says_nothing():
        maybe_enable_token_auth_if_token_available(warn_if_disabled=False)


def _ensure_token() -> None:
    """Creates this user's token if there is none; `ray start` finds it, and so do this user's
    programs on this machine. Does nothing if the user chose a mode ($RAY_AUTH_MODE)."""
    if "RAY_AUTH_MODE" in os.environ:
        return
    try:
        from ray._private.authentication import authentication_token_setup as tokens
    except ImportError:
        return
    loader = tokens.AuthenticationTokenLoader.instance()
    if not loader.has_token(ignore_auth_mode=True):
        with _ray_says_nothing():
            tokens.generate_and_save_token()
        loader.reset_cache()


@contextmanager
def _ray_says_nothing() -> Iterator[None]:
    """Keeps Ray's log lines below errors off the user's terminal."""
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _is_this_machine(host: str) -> bool:
    """Whether the host is an address of this machine: a port can be opened there."""
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _require_reachable(address: str) -> None:
    """Refuses an address without a listener at once; Ray itself would try for minutes."""
    if address.startswith(("ray://", "http://", "https://")):
        raise ConfigurationError(
            f"{RAY_ADDRESS.key} (or $RAY_ADDRESS) is {address}; give auto, or the host:port "
            "that `ray start` prints"
        )
    _, colon, port = address.rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigurationError(
            f"{RAY_ADDRESS.key} (or $RAY_ADDRESS) is {address!r}; write host:port, or auto"
        )
    reason = _unreachable(address)
    if reason is not None:
        raise ResourceUnavailableError(
            f"no Ray cluster answers at {address} ({reason}); start it, or change {RAY_ADDRESS.key}"
        )


def _unreachable(address: str) -> str | None:
    """Returns why the address does not answer; None when it does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), REACHABLE_TIMEOUT_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return None


def start_local_ray() -> None:
    """Starts a cluster on this machine that outlives this process, and connects. It listens on the
    network, so it requires this user's token."""
    with locked("start-ray.lock"):  # two programs that find no cluster must not start two
        local = _local_address()
        if local is not None:  # another program was faster
            return _init(local)
        _ensure_token()
        print(
            ("no Ray cluster runs here: starting one on this machine; it stays until `ray stop`"),
            file=sys.stderr,
            flush=True,
        )
        command = [
            sys.executable,
            "-m",
            "ray.scripts.scripts",
            "start",
            "--head",
            "--port=0",
            "--include-dashboard=false",
            "--disable-usage-stats",
        ]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                timeout=START_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise ResourceUnavailableError(
                f"`ray start --head` has not ended within {START_TIMEOUT_S:.0f} s; try it by hand"
            ) from None
        if done.returncode != 0:
            raise ResourceUnavailableError(f"`ray start --head` failed: {_last_line(done.stdout)}")
        local = _local_address()
        if local is None:
            raise ResourceUnavailableError("the Ray cluster just started is not found")
        _started.append(local)
        return _init(local)


_started: list[str] = []  # the clusters that this program started


def tell_what_stays() -> None:
    """Repeats the notice that a cluster was started, which may have scrolled off the screen."""
    if _started:
        _started.clear()
        print(
            "the Ray cluster this program has started keeps running (`ray stop` ends it)",
            file=sys.stderr,
            flush=True,
        )


def _first_line(error: BaseException) -> str:
    """The first line of Ray's message; the whole message where the first line is incomplete, as it
    is for a version mismatch."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [
        type(error).__name__
    ]
    return " ".join(lines) if lines[0].endswith(":") else lines[0]


def _last_line(text: str) -> str:
    return next(
        (line.strip() for line in reversed(text.splitlines()) if line.strip()), "it said nothing"
    )
