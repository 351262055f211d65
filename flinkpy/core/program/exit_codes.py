"""What a program's exit code says when a signal ended it, as shells have it."""

from __future__ import annotations

import signal

SIGNALLED = 128  # and the signal's number
# SIGPIPE, which Windows does not know: whoever read what the program prints has gone
READER_GONE = SIGNALLED + 13
INTERRUPTED = SIGNALLED + signal.SIGINT
