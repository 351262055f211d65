"""What one operator of one subtask saves: keyed state, operator state, or both. Each part keeps its own format; only where there are both they stand
in a container, so an operator that has one kind of state saves exactly that.

::

    "FOC" | version (1 byte) | length of keyed state (8 bytes) | keyed state | operator state
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import key_group_range
from flinkpy.state import operator_snapshots
from flinkpy.state.keyed_snapshots import redistribute
from flinkpy.state.operator_snapshots import redistribute_operator_state

MAGIC, VERSION = b"FOC", 1
_PREFIX = len(MAGIC) + 1 + 8


class Parts(NamedTuple):
    """The two kinds of state, each None where there is none."""

    keyed: bytes | None = None
    operator: bytes | None = None


def join(keyed: bytes | None, operator: bytes | None) -> bytes | None:
    """Both as one."""
    if keyed is None or operator is None:
        return operator if keyed is None else keyed
    return b"".join([MAGIC, bytes([VERSION]), len(keyed).to_bytes(8, "big"), keyed, operator])


def split(saved: bytes | None) -> Parts:
    """What ``join`` put together. What begins like neither operator state nor a container counts as keyed state."""
    if saved is None:
        return Parts()
    if saved.startswith(operator_snapshots.MAGIC):
        return Parts(operator=saved)
    if not saved.startswith(MAGIC):
        return Parts(keyed=saved)
    if len(saved) < _PREFIX or saved[len(MAGIC)] != VERSION:
        raise ProgramError(f"these {len(saved)} bytes of state are damaged, or of a version not known here: use the flinkpy that wrote them")
    end = _PREFIX + int.from_bytes(saved[len(MAGIC) + 1 : _PREFIX], "big")
    if end > len(saved):
        raise ProgramError(f"state is cut short: {len(saved)} bytes, of which keyed state alone should take {end}")
    return Parts(saved[_PREFIX:end], saved[end:])


def redistribute_all(saved: Sequence[bytes | None], max_parallelism: int, new_parallelism: int) -> list[bytes | None]:
    """What each subtask to come starts from, out of what those before saved, in their order: keyed state by key group, operator state as its kinds
    say. Nothing is unpickled."""
    parts = [split(each) for each in saved]
    keyed = [each.keyed for each in parts if each.keyed is not None]
    # A subtask that had none counts all the same: with unchanged parallelism each list stays where it was.
    has_operator_state = any(each.operator is not None for each in parts)
    nothing = operator_snapshots.OperatorSnapshot({}, {}).to_bytes()
    operator = [each.operator if each.operator is not None else nothing for each in parts]
    shares: list[bytes | None] = list(redistribute_operator_state(operator, new_parallelism)) if has_operator_state else [None] * new_parallelism
    return [
        join(redistribute(keyed, key_group_range(subtask, max_parallelism, new_parallelism)) if keyed else None, share)
        for subtask, share in enumerate(shares)
    ]
