"""Bytes that are put together part by part, and may be more than memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from flinkpy.core.files.spill_file import SpillFile

Data: TypeAlias = "bytes | memoryview"
IN_MEMORY = 16 << 20  # bytes


def gathered(parts: Iterable[Data], folders: Sequence[str] = ()) -> Data:
    """All parts, one behind the other. More than some megabytes are a view of a mapped file under
    ``folders``, which has no name and goes with the view. Raises ResourceUnavailableError if the
    disk fails.

    >>> gathered([b"ab", b"c"])
    b'abc'
    """
    first: list[Data] = []
    size, left = 0, iter(parts)
    for part in left:
        first.append(part)
        size += len(part)
        if size > IN_MEMORY:
            break
    else:
        return first[0] if len(first) == 1 else b"".join(first)
    file = SpillFile(folders)
    file.append(first)
    del first, part
    for part in left:
        file.append([part])
    return memoryview(file.mapped())
