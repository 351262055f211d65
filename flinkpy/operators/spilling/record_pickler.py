"""Records of a batch job as bytes in a file."""

from __future__ import annotations

import pickle
from contextlib import suppress

from flinkpy.core.errors import ProgramError
from flinkpy.core.program.by_value import StreamPickler
from flinkpy.core.program.program_pickler import dumps_any


class RecordPickler:
    """Pickles records that this process reads again: so classes of the user's ``__main__`` by name
    only."""

    def __init__(self) -> None:
        self._by_value = StreamPickler(only_here=True)

    def dumps(self, items: object) -> bytes:
        """The items as bytes. Raises ProgramError for what cannot be pickled."""
        try:
            return pickle.dumps(items, 5)
        except Exception:
            return _dumped_by_value(items, self._by_value)


def _dumped_by_value(items: object, by_value: StreamPickler) -> bytes:
    with suppress(Exception):  # a lambda among them, for one
        return by_value.dumps(items)
    try:
        return dumps_any(items)
    except Exception as error:
        raise ProgramError(
            f"records of a batch job cannot be spilled: {error}; emit plain values, tuples, "
            "rows or picklable objects"
        ) from error
