"""The tests of a source's event time: timestamps, watermarks, and those of splits that are read
side by side."""

from __future__ import annotations

import unittest
import uuid
from collections.abc import Callable
from typing import Any, ClassVar

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.rows import rows_of
from flinkpy.core.elements import Batch, ColumnBatch, RowBatch, Watermark
from flinkpy.testing.connectors.connector_tests import check, in_time
from flinkpy.testing.connectors.source_author import SourceSteps
from flinkpy.testing.connectors.source_world import World


class NumberOf:
    """``number_of`` of the tests in this process, for functions that are pickled."""

    _here: ClassVar[dict[str, Callable[[Any], int]]] = {}

    def __init__(self, number_of: Callable[[Any], int]) -> None:
        self._id = uuid.uuid4().hex
        self._here[self._id] = number_of

    def __call__(self, record: object) -> int:
        return self._here[self._id](record)


class SourceTimes(SourceSteps):
    """Tests of event time."""

    @in_time
    def test_splits_have_watermarks_of_their_own(self) -> None:
        """Splits without end are read side by side, and however far apart their event times are, no
        record is late; also behind a checkpoint."""
        if not self.side_by_side:
            raise unittest.SkipTest("side_by_side is False")
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(
            NumberOf(self.number_of)
        )
        for is_backwards in (False, True):
            self.is_backwards = is_backwards
            self.lay(self.records)
            self._read_late_and_early(strategy)
            self.open_anew()

    def _read_late_and_early(self, strategy: WatermarkStrategy) -> None:
        steps = self.steps_to_the_end(self.unbounded_source)
        for point in range(3):
            first = self.world(self.unbounded_source(), size=3, strategy=strategy)
            self._read_with_time(first, steps * point // 3)
            second = first
            if self.replays:
                saved = first.saved(1)
                first.close()
                second = self.closing(first.restored_from(saved))
            self._read_with_time(second, 4 * steps + 100)
            self._none_late(second)
            second.close()
            self.lay_anew()

    def _read_with_time(self, world: World, steps: int) -> None:
        """A step, and the time in which a watermark is emitted."""
        for _ in range(steps):
            if not world.step():
                world.woken.wait(0.002)
            world.clock.advance(0.3)
            for subtask in world.subtasks:
                subtask.timers.fire()

    def _none_late(self, world: World) -> None:
        for subtask in world.subtasks:
            watermark: int | None = None
            for element in subtask.output.elements:
                if isinstance(element, Watermark):
                    watermark = element.timestamp
                elif (
                    isinstance(element, (RowBatch, ColumnBatch))
                    and element.timestamps is not None
                    and watermark is not None
                ):
                    late = [int(time) for time in element.timestamps if time <= watermark]
                    check(
                        not late,
                        (
                            f"the event time {late[0] if late else 0} came behind the watermark "
                            f"{watermark}: it was too early"
                        ),
                    )

    @in_time
    def test_its_event_times_and_watermarks_are_right(self) -> None:
        """Records have the times that the author says, and none comes behind a watermark that the
        source itself gives."""
        self.timestamp_of(0)
        self.lay(self.records)
        for make in self.kinds():
            world = self.world(make())
            self.read_on(world)
            for subtask in world.subtasks:
                for batch in subtask.output.batches:
                    self._check_times(batch)
            self._none_late(world)
            world.close()
            self.lay_anew()

    def _check_times(self, batch: Batch) -> None:
        check(batch.timestamps is not None, "the records have no event times")
        check(
            len(batch.timestamps) == len(batch),  # type: ignore[arg-type]
            f"{len(batch)} records have {len(batch.timestamps)} event times",  # type: ignore[arg-type]
        )
        # it was checked
        for record, time in zip(rows_of(batch), batch.timestamps):  # type: ignore[arg-type]
            wanted = self.timestamp_of(self.number_of(record))
            check(
                int(time) == wanted,
                f"record {self.number_of(record)} has the event time {time}, and not {wanted}",
            )
