"""What one operator of one subtask saves: its keyed state, its operator state, or both.

Each of the two keeps its own format. Only an operator that has both needs a container around them::

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


class SnapshotContainer(NamedTuple):
    """The two kinds of state as bytes, each None where the operator has none."""

    keyed: bytes | None = None
    operator: bytes | None = None

    def to_bytes(self) -> bytes | None:
        """The one kind as it is, both in a container, or None."""
        keyed, operator = self
        if keyed is None or operator is None:
            return operator if keyed is None else keyed
        return b"".join([MAGIC, bytes([VERSION]), len(keyed).to_bytes(8, "big"), keyed, operator])

    @staticmethod
    def from_bytes(saved: bytes | None) -> SnapshotContainer:
        """What ``to_bytes`` made. Bytes that begin like neither a container nor operator state are keyed state."""
        if saved is None:
            return SnapshotContainer()
        if saved.startswith(operator_snapshots.MAGIC):
            return SnapshotContainer(operator=saved)
        if not saved.startswith(MAGIC):
            return SnapshotContainer(keyed=saved)
        if len(saved) < _PREFIX or saved[len(MAGIC)] != VERSION:
            raise ProgramError(f"these {len(saved)} bytes of state are damaged, or of a version not known here: use the flinkpy that wrote them")
        end = _PREFIX + int.from_bytes(saved[len(MAGIC) + 1 : _PREFIX], "big")
        if end > len(saved):
            raise ProgramError(f"state is cut short: {len(saved)} bytes, of which keyed state alone should take {end}")
        return SnapshotContainer(saved[_PREFIX:end], saved[end:])


def redistribute_all(saved: Sequence[bytes | None], max_parallelism: int, new_parallelism: int) -> list[bytes | None]:
    """What each new subtask starts from, made of what the old subtasks saved, in their order. Keyed state moves by key group, operator state as its
    kind says. Nothing is unpickled."""
    containers = [SnapshotContainer.from_bytes(each) for each in saved]
    keyed = [each.keyed for each in containers if each.keyed is not None]
    # An old subtask without operator state counts all the same: with unchanged parallelism each list stays where it was.
    has_operator_state = any(each.operator is not None for each in containers)
    nothing = operator_snapshots.OperatorSnapshot({}, {}).to_bytes()
    operator = [each.operator if each.operator is not None else nothing for each in containers]
    shares: list[bytes | None] = list(redistribute_operator_state(operator, new_parallelism)) if has_operator_state else [None] * new_parallelism
    return [
        SnapshotContainer(
            redistribute(keyed, key_group_range(subtask, max_parallelism, new_parallelism)) if keyed else None, share).to_bytes()
        for subtask, share in enumerate(shares)
    ]
