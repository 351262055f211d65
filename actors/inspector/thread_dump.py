"""What each thread of this process is doing."""

from __future__ import annotations

import sys
import threading
import traceback

from flinkpy.actors.inspector.inspector_gateway import ThreadInfo


def thread_dump() -> tuple[ThreadInfo, ...]:
    """The threads by name. One that no Thread object stands for, as of a C library, is named by its
    number."""
    threads = {thread.ident: thread for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        thread = threads.get(ident)
        name = f"thread {ident}" if thread is None else thread.name
        found.append(
            ThreadInfo(
                name, thread is not None and thread.daemon, "".join(traceback.format_stack(frame))
            )
        )
    return tuple(sorted(found, key=lambda each: each.name))
