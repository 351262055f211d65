"""What the author of a source says to the kit, and how the kit reads such a source step by step,
without a cluster."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.source import Source
from flinkpy.testing.connectors.connector_tests import ConnectorTests, check, each_once
from flinkpy.testing.connectors.source_world import World

POINTS = 9  # how many points of a run are tried
AFTERWARDS = 30  # steps behind the last record, in which one may come twice


class SourceAuthor(ConnectorTests):
    """What the author says. Records are numbered, from 0 on: ``fill`` makes
    those of some numbers, and ``number_of`` says which number a record has."""

    records: int = 60  # how many most tests read
    splits: int = 1  # in how many splits ``fill`` can put them
    # False: what was read is gone, as with a socket, so there is nothing to go on from
    replays: bool = True
    # whether the records of one split come in the order in which they were put there
    ordered: bool = True
    # False: splits are read one after the other, as files are, so a late one may be behind the
    # others' event time
    side_by_side: bool = True
    discovers: bool = False  # whether a source without end finds a split that is new
    interrupts: bool = True  # whether a read that waits ends soon when its reader is closed
    # how many records the tests of throughput and memory read; the start of the job counts too
    many: int = 20_000
    # how much memory a reader may fill ahead of a consumer that has stopped
    read_ahead_bytes: int = 1 << 20
    says: str = ""  # what the error says when the outside system fails

    def fill(self, split: int, numbers: Sequence[int]) -> None:
        """Puts a record for each number into that split of the outside system, behind what is
        there. By default nothing is done: for sources that make ``laid`` records by themselves."""

    def number_of(self, record: Any) -> int:
        """The number of a record, as the source gives it (of a columnar source: a Row)."""
        return int(record)

    def bounded_source(self) -> Source[Any]:
        """A source that reads what was filled in, and ends."""
        raise unittest.SkipTest("there is no bounded source")

    def unbounded_source(self) -> Source[Any]:
        """A source that reads what was filled in, and what comes later."""
        raise unittest.SkipTest("there is no source without end")

    def timestamp_of(self, number: int) -> int:
        """The event time that the source gives that record, in milliseconds."""
        raise unittest.SkipTest("define timestamp_of(number), if the source gives event times")

    def acknowledged(self) -> Collection[int]:
        """The numbers of the records that the source has acknowledged to the outside system, which
        need not keep them any longer."""
        raise unittest.SkipTest(
            "define acknowledged(), if the source acknowledges what it has read"
        )


class SourceSteps(SourceAuthor):
    """Reads the source in worlds of the test's own, in which each step can be chosen."""

    laid: int = 0  # how many records there are
    is_backwards = False  # whether the last split has the least numbers

    def lay(self, count: int) -> list[int]:
        """Puts so many records there, a contiguous part of them in each split."""
        self.laid = count
        for split in range(self.splits):
            part = self.splits - 1 - split if self.is_backwards else split
            self.fill(split, range(part * count // self.splits, (part + 1) * count // self.splits))
        return list(range(count))

    def lay_anew(self) -> None:
        """The same once more, where what was read is gone."""
        if not self.replays:
            self.open_anew()
            self.lay(self.laid)

    def need_replay(self) -> None:
        if not self.replays:
            raise unittest.SkipTest("what was read is gone: there is nothing to go on from")

    def kinds(self) -> Iterator[Callable[[], Source[Any]]]:
        """The bounded source and that without end, as far as there are such."""
        author = type(self)
        found = [
            made
            for made, base in (
                (self.bounded_source, SourceAuthor.bounded_source),
                (self.unbounded_source, SourceAuthor.unbounded_source),
            )
            if getattr(author, made.__name__) is not base
        ]
        check(bool(found), f"{author.__name__} defines bounded_source or unbounded_source, or both")
        yield from found

    def world(
        self,
        source: Source[Any],
        readers: int = 1,
        *,
        size: int = 7,
        seed: int = 0,
        doubled: float = 0.0,
        strategy: WatermarkStrategy | None = None,
    ) -> World:
        made = World(source, readers, seed, doubled, size, strategy=strategy)
        return self.closing(made)

    def closing(self, world: World) -> World:
        """The world, which is closed behind the test."""
        self._closing.append(world.close)
        return world

    def numbers(self, *worlds: World) -> list[int]:
        return [self.number_of(value) for world in worlds for value in world.values]

    def read_on(self, world: World, *before: World, count: int | None = None) -> None:
        """Until all that was laid (or so many of them) was read, here and in the worlds before; a
        bounded source until its end. Then a bit more, as doubled records may follow."""
        wanted = self.laid if count is None else count
        is_bounded = world.source.boundedness.name == "BOUNDED"

        def is_done() -> bool:
            return (
                world.finished
                if is_bounded and count is None
                else len(set(self.seen(*before, world))) >= wanted
            )

        world.run_until(
            is_done,
            f"reading {wanted} records (so far: {len(set(self.seen(*before, world)))})",
            self.patience_s,
        )
        for _ in range(AFTERWARDS):
            world.step()

    def seen(self, *worlds: World) -> list[int]:
        """The numbers that were read, of those laid: a source without end may make more by
        itself."""
        is_endless = worlds[-1].source.boundedness.name != "BOUNDED"
        return [number for number in self.numbers(*worlds) if not is_endless or number < self.laid]

    def all_once(self, when: str, *worlds: World) -> None:
        each_once(self.seen(*worlds), range(self.laid), when)

    def step_some(self, world: World, steps: int) -> None:
        """Takes so many steps, or what can be done at once."""
        for _ in range(steps):
            if not world.step() and not world.pass_time() and not world.woken.wait(0.01):
                return

    def steps_to_the_end(self, make: Callable[[], Source[Any]]) -> int:
        """How many steps it takes a reader to read everything: the points at which something may
        happen."""
        world = self.world(make())
        self.read_on(world)
        world.close()
        self.lay_anew()
        return max(POINTS, world.steps - AFTERWARDS)
