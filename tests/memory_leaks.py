"""An operator that does not give back its managed memory when its task ends fails the test in
which it ran. In production that is a warning in the log."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flinkpy.runtime.memory.task_memory import Leak, TaskMemory

LEAKS: list[Leak] = []
_release_all = TaskMemory.release_all


def _release_all_and_tell(self: TaskMemory) -> list[Leak]:
    found = _release_all(self)
    LEAKS.extend(found)
    return found


TaskMemory.release_all = _release_all_and_tell  # type: ignore[method-assign]


@pytest.fixture(autouse=True)
def no_managed_memory_leaks() -> Iterator[None]:
    LEAKS.clear()
    yield
    assert not LEAKS, ", ".join(map(str, LEAKS))
