"""Jobs of one environment that statements submit: each has only what it needs, and what the program
has recorded beside it stays for ``execute``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flinkpy.core.program.launch_context import is_pending, restore_pending
from flinkpy.datastream.streams.recorded_program import RecordedProgram, leading_to
from flinkpy.graph.transformations import Transformation


class Separation:
    """What one block adds to a program."""

    def __init__(self, program: RecordedProgram) -> None:
        self._program = program
        self.before = list(program.transformations)
        self.taken: set[Transformation] = set()

    def separate(self) -> None:
        """From now on the program is the block's job alone: what it has added, and what leads to
        that."""
        here = self._program.transformations
        added = [each for each in here if each not in set(self.before)]
        self.taken = leading_to(added)
        self._program.transformations = [each for each in here if each in self.taken]


@contextmanager
def apart(program: RecordedProgram) -> Iterator[Separation]:
    """At the end of the block the program has again what it had before, without what was
    submitted."""
    separation, was_pending = Separation(program), is_pending()
    try:
        yield separation
    finally:
        program.transformations = [
            each for each in separation.before if each not in separation.taken
        ]
        restore_pending(was_pending)
