"""Which progress display a waiting program shows."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from flinkpy.cluster.display.notebook_progress import NotebookProgress
from flinkpy.cluster.display.progress import ProgressDisplay, is_terminal
from flinkpy.cluster.display.restart_notice import RestartNotice
from flinkpy.cluster.display.slot_notice import SlotNotice
from flinkpy.core.options.engine import SHOW_PROGRESS
from flinkpy.core.options.schema import read
from flinkpy.core.source_places import in_notebook


def progress_wanted(configuration: Mapping[str, Any], terminal: TextIO) -> bool:
    """Whether to show the display: as ``client.progress`` says, else where ``terminal`` can be
    drawn on."""
    wanted = read(configuration, SHOW_PROGRESS)
    return (
        is_terminal(terminal) and os.environ.get("TERM") != "dumb"
        if wanted is None
        else bool(wanted)
    )


def make_progress(configuration: Mapping[str, Any], who_holds_slots: str) -> RestartNotice:
    """What tells of restarts, and shows the display there is."""
    return RestartNotice(_display(configuration, who_holds_slots))


def _display(
    configuration: Mapping[str, Any], who_holds_slots: str
) -> ProgressDisplay | NotebookProgress | SlotNotice | None:
    """The display to use: in the output of a notebook's cell, or on standard error. Where none can
    be drawn and none was turned off, a notice about slots that do not come, in which
    ``who_holds_slots`` says where to look."""
    if in_notebook():
        return NotebookProgress() if read(configuration, SHOW_PROGRESS) is not False else None
    if sys.stderr is None:  # Python sets None where the descriptor is closed
        return None
    if progress_wanted(configuration, sys.stderr):
        return ProgressDisplay(sys.stderr)
    return (
        SlotNotice(sys.stderr, who_holds_slots)
        if read(configuration, SHOW_PROGRESS) is None
        else None
    )
