"""Python files a program names so that it, and its functions, can import them."""

from __future__ import annotations

import os
import sys

from flinkpy.datastream.checks import refuse


def put_on_path(file_path: str) -> None:
    """A folder or a zip itself, a module's folder; ProgramError where there is none."""
    if not os.path.exists(file_path):
        raise refuse(f"add_python_file(): there is no {file_path}")
    path = os.path.abspath(file_path)
    entry = path if os.path.isdir(path) or path.endswith((".zip", ".egg", ".whl")) else os.path.dirname(path)
    if entry not in sys.path:
        sys.path.insert(0, entry)
