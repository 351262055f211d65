"""The tests that every sink passes. Step by step, so that each failure falls where it should."""

from __future__ import annotations

import random
import threading
import unittest

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.program.code import dumps, loads
from flinkpy.operators.sinks.sink_port import Sink
from flinkpy.testing.connectors.connector_tests import (
    check,
    check_ended,
    check_returns,
    each_once,
    in_time,
    new_threads,
    pass_a_moment,
)
from flinkpy.testing.connectors.sink_author import SinkSteps
from flinkpy.testing.connectors.sink_jobs import SinkJobs
from flinkpy.testing.connectors.sink_world import WITHOUT_CHECKPOINTS, SinkWorld

SEEDS = 15
STEPS = 25
WAITS = (
    "a call of the writer waits for the outside system: use a ThreadedSinkWriter, or "
    "available and flushed"
)
LONGEST_CALL_S = 5.0  # of a call that must return at once: a bound for a loaded machine


class SinkTests(SinkJobs, SinkSteps):
    """The suite for a sink. Derive from it, and say what the sink is, how a record is made, and
    what somebody sees who reads the outside system::

        class TestTable(SinkTests):
            def open(self):
                self.table = make_table(self.folder / "table")

            def sink(self):
                return TableSink(self.table.name)

            def read(self):
                return self.table.rows()

    By default a record is a whole number. A sink that shows records at once, and again behind a
    failure, says ``exactly_once = False``. Tests that need what the author does not give are
    skipped, and say what it is."""

    @in_time
    def test_it_travels(self) -> None:
        sink = loads(dumps(self.sink()))
        check(isinstance(sink, Sink), f"pickled, it becomes {sink!r:.80}")

    @in_time
    def test_all_is_seen_at_the_end(self) -> None:
        """In a job without checkpoints, whose last records came just before its end."""
        for writers in (1, 3):
            world = self.world(writers, WITHOUT_CHECKPOINTS)
            world.feed(self.records + 1)
            world.end_input()
            world.close()
            self.sees(self.records + 1, f"{writers} writers, without checkpoints")
            self._empty()

    @in_time
    def test_writers_without_a_record_do_no_harm(self) -> None:
        world = self.world(3)
        world.complete(world.barrier())
        world.feed(1)
        self.complete_all(world)
        self.end(world)
        self.sees(1, "three writers, and one record")

    @in_time
    def test_nothing_is_seen_before_its_checkpoint_is_complete(self) -> None:
        self.need_two_phases()
        world = self.world(2)
        world.feed(self.records)
        self.unseen("before any checkpoint")
        checkpoint = world.barrier()
        self.unseen("prepared, and the checkpoint not complete")
        world.feed(5)
        world.complete(checkpoint)
        found = [number for number in self.seen() if number >= self.records]
        check(not found, f"seen behind the checkpoint that is complete: {found}")
        world.crash()
        self.end(world)

    @in_time
    def test_what_a_checkpoint_has_is_there_when_it_is_complete(self) -> None:
        """A sink that shows records at once has written them out when the checkpoint is taken."""
        world = self.world(2)
        for count in (1, self.records, 7):
            world.feed(count)
            if self.exactly_once:
                self.complete_all(world)
            else:
                world.barrier()
            self.sees(world.position, "behind a checkpoint")
        self.end(world)
        self.sees(world.position, "at the end")

    @in_time
    def test_a_failure_before_the_checkpoint_is_complete(self) -> None:
        """What was prepared for it is written again by the next attempt."""
        for prepared in (False, True):
            world = self.world(2)
            world.feed(20)
            self.complete_all(world)
            world.feed(self.records)
            if prepared:
                world.barrier()
            world.crash()
            world.feed(self.records)
            self.complete_all(world)
            self.end(world)
            self.sees(20 + self.records, "failed behind a checkpoint")
            self._empty()

    @in_time
    def test_a_failure_between_prepare_and_commit(self) -> None:
        """The checkpoint is complete, and its notice is lost: the next attempt commits what it has,
        in another process."""
        world = self.world(2)
        world.feed(self.records)
        world.complete(world.barrier(), told=lambda subtask: False)
        world.crash()
        if self.exactly_once and not self.late_checkpoints:
            self.sees(self.records, "restored from a checkpoint that was not committed")
        world.feed(5)
        self.complete_all(world)
        self.end(world)
        self.sees(self.records + 5, "went on from a checkpoint that was not committed")

    @in_time
    def test_a_commit_may_come_again(self) -> None:
        """The next attempt commits what the checkpoint has, although it was committed before it
        failed."""
        world = self.world(2)
        world.feed(self.records)
        self.complete_all(world)
        for closed in (True, False, True):
            world.crash(closed=closed)
            self.sees(self.records, "committed again")
        world.feed(3)
        self.complete_all(world)
        world.crash()
        self.end(world)
        self.sees(self.records + 3, "committed again, and gone on")

    @in_time
    def test_a_commit_that_fails_comes_again(self) -> None:
        """The outside system fails while a checkpoint is committed: the error is raised, or what
        could not be committed is given back."""
        self.need_two_phases()
        world = self.world(2)
        world.feed(self.records)
        checkpoint = world.barrier()
        self.fail()
        try:
            world.complete(checkpoint)
        except Exception:
            self.mend()
            world.crash()
        else:
            self.mend()
        self.complete_all(world)
        self.sees(self.records, "the first commit failed")
        self.end(world)

    @in_time
    def test_what_an_aborted_checkpoint_had_goes_with_the_next(self) -> None:
        world = self.world(2)
        world.feed(20)
        world.abort(world.barrier())
        world.feed(20)
        world.abort(world.barrier(1))
        if self.exactly_once:
            self.unseen("both checkpoints were aborted")
        world.feed(20)
        self.complete_all(world)
        self.sees(60, "the checkpoint behind two that were aborted")
        self.end(world)
        self.sees(60, "at the end")

    @in_time
    def test_it_goes_on_with_another_number_of_writers(self) -> None:
        world = self.world(1)
        for writers, told in ((2, True), (1, False), (3, True)):
            world.feed(self.records // 3 + 1)
            # called at once
            world.complete(world.barrier(), told=lambda subtask: told)  # noqa: B023
            world.feed(4)
            world.crash(writers)
        world.feed(5)
        self.complete_all(world)
        self.end(world)
        self.sees(self.records // 3 * 3 + 8, "1 → 2 → 1 → 3 writers")

    @in_time
    def test_whatever_goes_wrong(self) -> None:
        """Checkpoints that are lost, aborted, late, notified to some; attempts that fail, that are
        cut off and live on, other numbers of writers."""
        for seed in range(SEEDS):
            chance = random.Random(seed)
            world = self.world(chance.randint(1, 3))
            for _ in range(STEPS):
                self._step(world, chance)
                self._check_what_is_seen(world, f"seed {seed}")
            world.feed(1 + world.furthest - world.position)
            self.complete_all(world)
            self.end(world)
            self.sees(world.position, f"seed {seed}, at the end")
            self._empty()

    def _step(self, world: SinkWorld, chance: random.Random) -> None:
        step = chance.randrange(7)
        if step <= 1:
            world.feed(chance.randint(1, 12))
        elif step == 2:
            world.barrier()
        elif step == 3 and world.running:
            some = chance.getrandbits(3)
            world.complete(chance.choice(world.running), lambda subtask: bool(some >> subtask & 1))
        elif step == 4:
            world.complete(world.barrier())
        elif step == 5:
            world.abort(world.barrier(chance.randint(0, 2)))
        elif step == 6 and not chance.randrange(3):
            world.crash(chance.randint(1, 3), closed=chance.random() < 0.7)

    def _check_what_is_seen(self, world: SinkWorld, when: str) -> None:
        if not self.exactly_once:
            return
        reached = world.completed.position if world.completed is not None else 0
        found = self.seen()
        early = [number for number in found if number >= reached]
        check(not early, f"{when}: seen behind the last checkpoint that is complete: {early[:10]}")
        each_once(found, set(found), when)

    @in_time
    def test_it_is_closed_whatever_happened(self) -> None:
        """Without a record, without an end, behind a failure: no thread stays, and nothing is seen
        that no checkpoint has."""
        before = set(threading.enumerate())
        for count in (0, 1, self.records):
            world = self.world(2)
            world.feed(count)
            began = SYSTEM_CLOCK.monotonic()
            world.close()
            took = SYSTEM_CLOCK.monotonic() - began
            check(took < LONGEST_CALL_S, f"close() took {took:.1f} s")
            if self.exactly_once:
                self.unseen("the writers were closed before any checkpoint")
        check_ended(new_threads(before), self.prompt_s, "the writers were closed")

    # -- an outside system that is slow ------------------------------------------------------------

    @in_time
    def test_no_call_waits_while_the_outside_system_is_silent(self) -> None:
        """The thread that calls a writer runs all tasks of the process: the writer says that it has
        no room, and nothing is lost."""
        world = self.world()
        world.feed(10)
        self.pause()
        self._closing.append(self.go_on)
        check_returns(lambda: self._fill_up(world), self.patience_s, WAITS)
        held = world.position - 10
        check(
            held < self.most_held,
            (
                f"the writer took {held} records while the outside system was silent: it must say "
                "that it is not available"
            ),
        )
        self.go_on()
        self.complete_all(world)
        self.sees(world.position, "the outside system was silent for a while")
        self.end(world)

    def _fill_up(self, world: SinkWorld) -> None:
        """Gives it records as long as it wants some, and asks it to flush."""
        operator = world.operators[0]
        while operator.available and world.position < self.most_held:
            operator.process_batch(self.batch_of(list(range(world.position, world.position + 10))))
            world.position += 10
        operator.prepare_snapshot_pre_barrier(1_000_000)

    @in_time
    def test_closing_does_not_wait_while_the_outside_system_is_silent(self) -> None:
        before = set(threading.enumerate())
        world = self.world()
        self.pause()
        self._closing.append(self.go_on)
        check_returns(lambda: self._fill_up(world), self.patience_s, WAITS)
        pass_a_moment(0.2)  # until it has begun to wait
        began = SYSTEM_CLOCK.monotonic()
        world.close()
        took = SYSTEM_CLOCK.monotonic() - began
        check(
            took < LONGEST_CALL_S, f"close() took {took:.1f} s while the outside system was silent"
        )
        check_ended(new_threads(before), self.prompt_s, "the writer was closed; define interrupt()")

    def _empty(self) -> None:
        """Begins with an empty outside system once more."""
        self.open_anew()
        left = self.seen()
        if left:
            raise unittest.SkipTest(
                f"open() leaves {len(left)} records of before: make the outside system empty there"
            )
