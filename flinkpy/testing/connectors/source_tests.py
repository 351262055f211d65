"""The tests that every source passes. Step by step, so that each falls where it should."""

from __future__ import annotations

import pickle
import threading
import tracemalloc
import unittest
from typing import Any

from flinkpy.connectors.source_api.source import Source
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.base import InputStatus
from flinkpy.testing.connectors.connector_tests import (
    check,
    check_ended,
    check_returns,
    in_time,
    new_threads,
)
from flinkpy.testing.connectors.source_author import POINTS, SourceSteps
from flinkpy.testing.connectors.source_jobs import SourceJobs
from flinkpy.testing.connectors.source_times import SourceTimes
from flinkpy.testing.connectors.source_world import World

ON_A_THREAD = "read on a thread of its own (of a PythonSource: blocking = True)"
WAITS = f"poll() waits for the outside system: {ON_A_THREAD}"
LONGEST_CALL_S = 5.0  # of a call that must return at once: a bound for a loaded machine
QUIET_ROUNDS = 40


class SourceTests(SourceJobs, SourceTimes, SourceSteps):
    """The suite for a source. Derive from it, and say how the outside system is filled, what the
    source is, and which number a record has::

        class TestTable(SourceTests):
            splits = 2

            def open(self):
                self.table = make_table(self.folder / "table")

            def fill(self, split, numbers):
                self.table.append(split, [f"line {number}" for number in numbers])

            def bounded_source(self):
                return TableSource(self.table.name)

            def number_of(self, record):
                return int(record.split()[1])

    ``number_of`` gets a record as the source gives it; ``open``, ``fill`` and the rest are those of
    :class:`SourceTests` itself. Tests that need what the author does not give are skipped, and say
    what it is."""

    @in_time
    def test_it_travels(self) -> None:
        """The source is pickled to the JobMaster and to the workers, and is not changed by
        running."""
        self.lay(self.records)
        for make in self.kinds():
            source = make()
            before = loads(dumps(source))
            check(isinstance(before, Source), f"pickled, {source!r:.80} becomes {before!r:.80}")
            world = self.world(before)
            self.read_on(world)
            world.close()
            loads(dumps(before))
            self.lay_anew()

    @in_time
    def test_every_record_comes_once(self) -> None:
        self.lay(self.records)
        for make in self.kinds():
            for readers, size, doubled in ((1, 100, 0.0), (1, 1, 0.0), (2, 7, 0.3), (3, 7, 0.0)):
                world = self.world(make(), readers, size=size, seed=readers, doubled=doubled)
                self.read_on(world)
                self.all_once(f"read by {readers} readers in batches of {size}", world)
                world.close()
                self.lay_anew()

    @in_time
    def test_the_records_of_a_split_come_in_their_order(self) -> None:
        if not self.ordered:
            raise unittest.SkipTest("ordered is False")
        self.lay(self.records)
        for make in self.kinds():
            world = self.world(make())
            self.read_on(world)
            for split in range(self.splits):
                part = range(
                    split * self.laid // self.splits, (split + 1) * self.laid // self.splits
                )
                found = [number for number in self.seen(world) if number in part]
                check(found == sorted(found), f"split {split} came in the order {found[:30]}")
            world.close()
            self.lay_anew()

    @in_time
    def test_it_goes_on_from_a_checkpoint_anywhere(self) -> None:
        """Exactly the records behind the checkpoint come, wherever it is, also in another
        process."""
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            steps = self.steps_to_the_end(make)
            for point in range(POINTS):
                self._resumed(make(), (1, 1), steps * point // (POINTS - 1))

    @in_time
    def test_it_goes_on_with_another_number_of_readers(self) -> None:
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            steps = self.steps_to_the_end(make)
            for point in range(1, POINTS):
                self._resumed(make(), (1, 2, 1), steps * point // POINTS // 2)
            self._resumed(make(), (3, 1), steps // 2)

    def _resumed(self, source: Source[Any], readers: tuple[int, ...], steps: int) -> None:
        worlds = [self.world(source, readers[0])]
        for following in readers[1:]:
            self.step_some(worlds[-1], steps)
            saved = worlds[-1].saved(following)
            worlds[-1].close()
            worlds.append(self.closing(worlds[-1].restored_from(pickle.loads(pickle.dumps(saved)))))
        self.read_on(worlds[-1], *worlds[:-1])
        self.all_once(
            (
                f"read by {' → '.join(map(str, readers))} readers, with a checkpoint each {steps} "
                "steps"
            ),
            *worlds,
        )
        worlds[-1].close()

    @in_time
    def test_a_snapshot_is_of_what_was_emitted_and_disturbs_nothing(self) -> None:
        """At each batch: what was emitted before the snapshot and what a reader that is restored
        from it reads are all records, and the reader that was asked reads on as if it had not
        been."""
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            source = make()
            world = self.world(source, size=5)
            saved, emitted = [], [0]
            while not len(set(self.seen(world))) >= self.laid:
                known = len(world.values)
                world.run_until(
                    lambda: len(world.values) > known or world.finished,  # noqa: B023
                    "the next batch",
                    self.patience_s,
                )
                if len(world.values) == known:
                    break
                saved.append((world.saved(1), list(world.values)))
                check(len(world.values) >= emitted[-1], "what was emitted became less")
                emitted.append(len(world.values))
            self.all_once("asked for a snapshot behind each batch", world)
            world.close()
            for state, before in saved[:: max(1, len(saved) // POINTS)]:
                restored = self.closing(world.restored_from(state))
                numbers = [self.number_of(value) for value in before]
                restored.run_until(
                    lambda: self._is_done(restored, numbers),  # noqa: B023
                    "reading the rest",
                    self.patience_s,
                )
                for _ in range(20):
                    restored.step()
                again = sorted(set(numbers) & set(self.numbers(restored)))
                check(
                    not again,
                    (f"behind a snapshot at {len(before)} records these came again: {again[:10]}"),
                )
                lost = sorted(set(range(self.laid)) - set(numbers) - set(self.numbers(restored)))
                check(
                    not lost,
                    (f"behind a snapshot at {len(before)} records these did not come: {lost[:10]}"),
                )
                restored.close()

    def _is_done(self, world: World, before: list[int]) -> bool:
        return (
            world.finished
            or len({*before, *self.seen(world)}.intersection(range(self.laid))) >= self.laid
        )

    @in_time
    def test_what_a_reader_had_is_read_by_the_next_if_it_fails_before_a_checkpoint(self) -> None:
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            steps = self.steps_to_the_end(make)
            for point in range(1, POINTS, 2):
                world = self.world(make(), 2)
                self.step_some(world, steps * point // POINTS)
                world.restart(0)  # what it had emitted is forgotten with it
                self.read_on(world)
                self.all_once("one of two readers failed before any checkpoint", world)
                world.close()

    @in_time
    def test_no_call_waits(self) -> None:
        """``poll`` returns at once while there is nothing to read: the thread that calls it runs
        all tasks of the process."""
        self.lay(self.records)
        world = self._waiting_world()
        longest = [0.0]

        def poll() -> None:
            for _ in range(QUIET_ROUNDS):
                began = SYSTEM_CLOCK.monotonic()
                for subtask in world.subtasks:
                    if subtask.status is not InputStatus.END_OF_INPUT:
                        subtask.poll()
                longest[0] = max(longest[0], SYSTEM_CLOCK.monotonic() - began)

        check_returns(poll, self.patience_s, WAITS)
        check(
            longest[0] < LONGEST_CALL_S,
            f"poll() took {longest[0]:.1f} s while there was nothing to read: {ON_A_THREAD}",
        )

    def _waiting_world(self) -> World:
        """One whose reader has nothing to read: at the end of what there is, or while the outside
        system pauses."""
        if type(self).unbounded_source is not SourceSteps.unbounded_source:
            world = self.world(self.unbounded_source())
            check_returns(lambda: self.read_on(world), 2 * self.patience_s, WAITS)
            return world
        self.pause()
        self._closing.append(self.go_on)
        return self.world(self.bounded_source())

    @in_time
    def test_closing_ends_what_waits(self) -> None:
        """A read that waits for the outside system ends when its reader is closed; its thread does
        not stay."""
        if not self.interrupts:
            raise unittest.SkipTest("interrupts is False")
        self.lay(self.records)
        before = set(threading.enumerate())
        world = self._waiting_world()
        for _ in range(QUIET_ROUNDS // 4):
            world.step()
            world.woken.wait(0.002)
        threads = new_threads(before)
        began = SYSTEM_CLOCK.monotonic()
        world.close()
        took = SYSTEM_CLOCK.monotonic() - began
        check(took < LONGEST_CALL_S, f"close() took {took:.1f} s: nobody may wait for a read")
        check_ended(threads, self.prompt_s, "the reader was closed; define interrupt()")

    @in_time
    def test_a_pause_of_the_outside_system_loses_nothing(self) -> None:
        self.lay(self.records)
        self._closing.append(self.go_on)
        for make in self.kinds():
            for steps in (0, 10):
                world = self.world(make())
                self.step_some(world, steps)
                self.pause()
                for _ in range(QUIET_ROUNDS):
                    world.step()
                    world.woken.wait(0.001)
                self.go_on()
                self.read_on(world)
                self.all_once(f"the outside system paused behind {steps} steps", world)
                world.close()
                self.lay_anew()

    @in_time
    def test_records_written_later_come_too(self) -> None:
        self.lay(self.records // 2)
        world = self.world(self.unbounded_source())
        if type(self).fill is SourceSteps.fill:
            raise unittest.SkipTest("nothing is filled in")
        self.read_on(world)
        self.fill(self.splits - 1, range(self.laid, self.records))
        self.laid = self.records
        self.read_on(world)
        self.all_once("some were written while it was read", world)

    @in_time
    def test_new_splits_are_found(self) -> None:
        if not self.discovers:
            raise unittest.SkipTest("discovers is False")
        self.lay(self.records)
        first = self.world(self.unbounded_source(), 2)
        self.read_on(first)
        self.fill(self.splits, range(self.laid, self.laid + 10))
        self.laid += 10
        self.read_on(first)
        self.all_once("a split was new", first)
        saved = first.saved(2)
        first.close()
        second = self.closing(first.restored_from(saved))
        self.fill(self.splits + 1, range(self.laid, self.laid + 10))
        self.laid += 10
        self.read_on(second, first)
        self.all_once("another one was new behind a checkpoint", first, second)

    # -- what it holds, and tells ------------------------------------------------------------------

    @in_time
    def test_it_reads_ahead_a_bounded_amount(self) -> None:
        """A consumer that has stopped holds the reader back: it does not fill the memory with what
        follows."""
        self.lay(self.many)
        world = self.world(next(self.kinds())(), size=100)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            world.run_until(lambda: bool(world.values), "the first batch", self.patience_s)
            for _ in range(QUIET_ROUNDS):
                threading.Event().wait(0.005)  # the time in which a thread reads ahead
            stalled = tracemalloc.get_traced_memory()[0] - before
            self.read_on(world)
            everything = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()
        if everything < 2 * self.read_ahead_bytes:
            raise unittest.SkipTest(
                f"all of it takes {everything >> 10} KiB: set many higher, or "
                "read_ahead_bytes lower, to see what is read ahead"
            )
        check(
            stalled <= self.read_ahead_bytes,
            (
                f"the reader holds {stalled >> 10} KiB while nobody takes records, of "
                f"{everything >> 10} KiB in all"
            ),
        )

    @in_time
    def test_it_tells_what_was_read_when_a_checkpoint_is_complete(self) -> None:
        self.acknowledged()
        for make in self.kinds():
            self.open_anew()
            self.lay(self.records)
            world = self.world(make())
            self.read_on(world, count=self.records // 2)
            world.saved(1)
            before = set(self.numbers(world))
            known = sorted(self.acknowledged())
            check(
                not known, f"these were acknowledged before a checkpoint was complete: {known[:10]}"
            )
            world.subtasks[0].operator.notify_checkpoint_complete(1)
            deadline = SYSTEM_CLOCK.monotonic() + self.patience_s
            while not self.acknowledged() and SYSTEM_CLOCK.monotonic() < deadline:
                world.woken.wait(0.005)
            told = set(self.acknowledged())
            check(bool(told), "nothing was acknowledged when the checkpoint was complete")
            check(
                told <= before,
                (
                    "these were acknowledged, and not read before the checkpoint: "
                    f"{sorted(told - before)[:10]}"
                ),
            )
            world.close()
