"""What an asynchronous operator saves: the records whose results have not gone out, with their timestamps, and the watermarks between them.

Not the calls: a restored job makes them again, so a function's effects happen at least once. The records belong to no key; when the
parallelism changes they are dealt out one by one, and the watermarks between them are dropped (sources make new ones).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import Any, TypeAlias

from flinkpy.core import code
from flinkpy.core.elements import Watermark
from flinkpy.core.errors import ProgramError
from flinkpy.operators.async_queue import Entry, Queued

_MAGIC = b"AIO\x01"

Saved: TypeAlias = "Watermark | tuple[Any, int | None]"  # a watermark, or a record and its timestamp


def saved_form(elements: Iterable[Queued]) -> list[Saved]:
    """Of what is queued; statuses and markers are not kept."""
    return [(element.value, element.timestamp) if isinstance(element, Entry) else element for element in elements
            if isinstance(element, (Entry, Watermark))]


def dump(elements: list[Saved], name: str) -> bytes:
    """Pickles them; ProgramError naming the operator where a record cannot be."""
    try:
        return _MAGIC + pickle.dumps(elements, 5)
    except (pickle.PicklingError, AttributeError, TypeError):  # a class that exists only by value
        return _MAGIC + code.dumps(elements, f"a record under way in {name}")


def load(data: bytes) -> list[Saved]:
    """Raises ProgramError for what is not the state of an asynchronous operator."""
    if data[: len(_MAGIC)] != _MAGIC:
        raise ProgramError(f"these {len(data)} bytes are no records under way: they do not begin with {_MAGIC!r}")
    elements: list[Saved] = code.loads(data[len(_MAGIC) :])
    return elements


def share_out(snapshots: Iterable[bytes], subtask: int, parallelism: int, name: str = "the operator") -> bytes:
    """The part of one of ``parallelism`` subtasks in the state of all subtasks before."""
    records = [element for snapshot in snapshots for element in load(snapshot) if not isinstance(element, Watermark)]
    return dump(records[subtask::parallelism], name)
