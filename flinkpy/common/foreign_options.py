"""Options of Flink and PyFlink that flinkpy does not have: kept, without effect, and told once.

A program written for PyFlink sets options of the JVM, and so does Flink's own ``config.yaml``. A typo in a program written for flinkpy is refused
instead, with the nearest option named.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from flinkpy.common.pyflink_imports import is_installed
from flinkpy.core.options.schema import validate

_LOG = logging.getLogger(__name__)
_told: set[str] = set()


def check_options(values: Mapping[str, Any], *, foreign: bool = False) -> None:
    """Refuses values that do not parse, and unknown options; those of a program written for PyFlink, and ``foreign`` ones, are told and pass."""
    unknown = [key for key in validate(values, keep_unknown=foreign or is_installed()) if key not in _told]
    if unknown:
        _told.update(unknown)
        _LOG.warning("options that flinkpy does not know are kept and have no effect: %s", ", ".join(sorted(unknown)))
