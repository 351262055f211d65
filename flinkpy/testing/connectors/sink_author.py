"""What the author of a sink says to the kit, and how the kit writes to such a sink step by step,
without a cluster."""

from __future__ import annotations

import unittest
from collections.abc import Iterable
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.elements import Batch, RowBatch
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.testing.connectors.connector_tests import (
    ConnectorTests,
    check,
    each_at_least_once,
    each_once,
    pass_a_moment,
)
from flinkpy.testing.connectors.sink_world import SinkWorld


class SinkAuthor(ConnectorTests):
    """What the author says. Records are numbered, from 0 on."""

    # False: records may come again behind a failure, and may be seen at once
    exactly_once: bool = True
    # how many checkpoints later a record is seen, as with files that are put together
    late_checkpoints: int = 0
    records: int = 60  # how many most tests write
    many: int = 20_000  # how many the test of throughput writes; the start of the job counts too
    says: str = ""  # what the error says when the outside system fails
    # how long it may take until somebody who reads sees what was written out
    seen_within_s: float = 0.0
    most_held: int = 10_000  # how many records a writer may hold while the outside system pauses

    def sink(self) -> Sink:
        """The sink under test; each call gives one that writes to the same place."""
        raise NotImplementedError(f"{type(self).__name__} defines sink()")

    def read(self) -> Iterable[Any]:
        """The records that somebody who reads the outside system sees now."""
        raise NotImplementedError(f"{type(self).__name__} defines read()")

    def record(self, number: int) -> Any:
        """The record of that number, for the sink."""
        return number

    def number_of(self, record: Any) -> int:
        """The number of a record that ``read`` gave."""
        return int(record)

    def batch_of(self, numbers: list[int]) -> Batch:
        """A batch of these records, for the writer. A sink that takes columns gets a ColumnBatch,
        if this says so."""
        return RowBatch([self.record(number) for number in numbers])


class SinkSteps(SinkAuthor):
    """Writes in worlds of the test's own, in which each step can be chosen."""

    def world(self, writers: int = 1, configuration: dict[str, Any] | None = None) -> SinkWorld:
        made = SinkWorld(self.sink(), writers, configuration, self.batch_of, self.patience_s)
        self._closing.append(made.close)
        return made

    def seen(self) -> list[int]:
        """The numbers of the records that are seen."""
        return [self.number_of(record) for record in self.read()]

    def need_two_phases(self) -> None:
        if not self.exactly_once:
            raise unittest.SkipTest(
                "exactly_once is False: records may be seen at once, and come again"
            )

    def sees(self, count: int, when: str) -> None:
        """The first so many records are seen: once, or if it is at least once, all of them, and
        none that nobody wrote."""
        deadline = SYSTEM_CLOCK.monotonic() + self.seen_within_s
        while len(found := self.seen()) < count and SYSTEM_CLOCK.monotonic() < deadline:
            pass_a_moment()
        (each_once if self.exactly_once else each_at_least_once)(found, range(count), when)

    def complete_all(self, world: SinkWorld) -> None:
        """A checkpoint is complete, and as many more as it takes until its records are seen."""
        for _ in range(1 + self.late_checkpoints):
            world.complete(world.barrier())

    def end(self, world: SinkWorld) -> None:
        """The input ends well, and the job with it."""
        world.end_input()
        world.last_checkpoint()
        world.close()

    def unseen(self, when: str) -> None:
        found = self.seen()
        check(not found, f"{when}: {len(found)} records are seen, {found[:10]}")
