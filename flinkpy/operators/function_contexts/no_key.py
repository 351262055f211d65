"""The current key where there is none: before the first record, and while a broadcast element is
processed."""

from __future__ import annotations

from typing import NoReturn

from flinkpy.core.program.program_line import refuse


class NoKey:
    """Raises when it is hashed. All keyed state hashes its key, so no check per access is
    needed."""

    def __init__(self, why: str) -> None:
        self._why = why

    def __hash__(self) -> int:
        self._refuse()

    def __reduce__(self) -> NoReturn:  # called by a backend that pickles its keys
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise refuse(self._why)

    def __repr__(self) -> str:
        return "no key"
