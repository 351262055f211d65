"""A program at a terminal: typed to, and read until it says what is expected. Nothing sleeps."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from flinkpy.core.clock import SYSTEM_CLOCK

TIMEOUT_S = 40.0
CTRL_C, CTRL_D = "\x03", "\x04"
# prompts write no escapes then; progress, which is drawn with some, is asked for
_PLAIN = {"TERM": "dumb", "FLINKPY_CLIENT_PROGRESS": "true"}
_CODES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\x01\x02]")


class Terminal:
    """Runs ``command`` with a terminal of its own, so that Ctrl-C is what the kernel makes of the
    key."""

    def __init__(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self._mine, theirs = pty.openpty()
        # the first terminal that a process without one opens becomes its own: so the shell does,
        # and then becomes the program
        adopting = ["/bin/sh", "-c", 'exec "$@" 0<>"$0"', os.ttyname(theirs), *command]
        self.process = subprocess.Popen(
            adopting,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            cwd=folder,
            start_new_session=True,
            env={**os.environ, **_PLAIN, **(environment or {})},
        )
        os.close(theirs)
        self._unread = self.screen = ""

    def type(self, text: str, end: str = "\n") -> None:
        os.write(self._mine, (text + end).encode())

    def press(self, key: str) -> None:
        self.type(key, end="")

    def expect(self, text: str) -> str:
        """Reads until ``text`` stands there; what came before it."""
        deadline = SYSTEM_CLOCK.monotonic() + TIMEOUT_S
        while text not in self._unread:
            data = self._read(deadline - SYSTEM_CLOCK.monotonic())
            assert data, f"{text!r} did not come; the screen says {self.screen!r}"
            self._unread += data
            self.screen += data
        before, _, self._unread = self._unread.partition(text)
        return before

    def end(self) -> int:
        """Waits until it has ended; its exit code."""
        deadline = SYSTEM_CLOCK.monotonic() + TIMEOUT_S
        while data := self._read(deadline - SYSTEM_CLOCK.monotonic()):
            self.screen += data
        return self.process.wait(TIMEOUT_S)

    def _read(self, timeout_s: float) -> str:
        if not select.select([self._mine], [], [], max(0.0, timeout_s))[0]:
            return ""
        try:
            data = os.read(self._mine, 65536)
        except OSError:  # the other side is closed
            return ""
        return _CODES.sub("", data.decode(errors="replace")).replace("\r\n", "\n")

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        os.close(self._mine)
