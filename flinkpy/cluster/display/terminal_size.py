"""How large the terminal is."""

from __future__ import annotations

import os
import shutil

_USUAL = 80, 24


def terminal_size() -> os.terminal_size:
    """Columns and lines of the terminal, 80 and 24 where it does not say. (Before Python 3.11
    shutil gives zeros for one that knows no size.)"""
    found = shutil.get_terminal_size(_USUAL)
    return os.terminal_size(each or usual for each, usual in zip(found, _USUAL))
