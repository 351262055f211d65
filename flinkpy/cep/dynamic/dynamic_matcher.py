"""Looks for many patterns in the events of many keys, in the order of their time.

An event is given only to those patterns that want it: because it may begin a match, or because a
partial match of its key waits for it (``watches``). The runs of each key lie in a mapping of the
state backend; a key without runs has no entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any, NamedTuple

from flinkpy.cep.automaton.partial_matches import CELL, NO_RUNS, NUMBER, Found, Runs, match_of
from flinkpy.cep.dynamic.active_pattern import ActivePattern, Beginning, FirstStep
from flinkpy.cep.dynamic.event_filter import EventFilter
from flinkpy.cep.dynamic.pattern_updates import PatternUpdate
from flinkpy.cep.dynamic.pattern_versions import Version
from flinkpy.cep.dynamic.runs_of_key import RunsOfKey
from flinkpy.cep.dynamic.shared_conditions import SharedConditions
from flinkpy.cep.dynamic.watches import Watches, places
from flinkpy.cep.matching.calendar import Calendar
from flinkpy.cep.matching.row_matcher import Fault, TooManyPartialMatchesError
from flinkpy.core.secrets.engine_logs import engine_logger

logger = engine_logger(__name__)


class FoundByPattern(NamedTuple):
    """What a version of a pattern found."""

    found: Found
    version: Version


class _Given(NamedTuple):
    """An event of a key. ``is_sure``: the comparisons that it was found by hold."""

    key: Any
    event: Any
    time: int
    is_sure: bool


class DynamicMatcher:
    """``most``: how many partial matches of a pattern a key may have."""

    def __init__(
        self, now_ms: Callable[[], int], gives_timed_out: bool, most: int | None = None
    ) -> None:
        self.runs: MutableMapping[Any, RunsOfKey] = {}
        self.patterns: dict[Version, ActivePattern] = {}
        self.calendar = Calendar(1)
        self.partial_matches = 0  # of all keys and patterns
        self.most_of_a_key = 0  # of one pattern
        # which event is being looked at, and for which pattern, if it is only one
        self._at: tuple[Version | None, Any] = None, None
        self._now_ms, self._gives_timed_out, self._most = now_ms, gives_timed_out, most
        self._conditions = SharedConditions()
        self._watches: Watches[ActivePattern] = Watches(self._conditions)
        self._begins = 0
        self._number = 0  # of the next event

    # -- patterns ----------------------------------------------------------------------------------

    def add(self, update: PatternUpdate) -> ActivePattern:
        """From now on a version is looked for. Raises ProgramError for a pattern that is
        refused."""
        pattern = ActivePattern(update, self._watches, self._now_ms, self._gives_timed_out)
        self.patterns[pattern.version] = pattern
        self._begins |= pattern.begins
        return pattern

    def finish(self, version: Version) -> None:
        """A version begins nothing more."""
        pattern = self.patterns[version]
        self._begins &= ~pattern.begins
        pattern.finish()

    def remove(self, versions: set[Version]) -> None:
        """Versions are looked for no more, and their partial matches are dropped."""
        has_runs = False
        for version in versions:
            pattern = self.patterns.pop(version)
            has_runs = has_runs or pattern.partial_matches > 0
            self._begins &= ~pattern.begins
            pattern.close()
        if has_runs:
            self._forget([key for key, kept in self.runs.items() if not versions.isdisjoint(kept)])

    def _forget(self, keys: Iterable[Any]) -> None:
        """Drops the runs of versions that are not looked for."""
        for key in keys:
            of_key = self.runs[key]
            for version in [each for each in of_key if each not in self.patterns]:
                self.partial_matches -= len(of_key[version])
                del of_key[version]
            self._store(key, of_key)

    def restore(self, runs: MutableMapping[Any, RunsOfKey]) -> None:
        """Goes on with the runs of a snapshot; all patterns are there."""
        self.runs = runs
        lost: set[Version] = set()
        for key in list(runs):
            of_key = runs[key]
            for version, kept in list(of_key.items()):
                pattern = self.patterns.get(version)
                if pattern is None:
                    del of_key[version]
                    lost.add(version)
                    continue
                self._count(pattern, len(kept))
                self._number = max(self._number, *(run[CELL][NUMBER] + 1 for run in kept))
                self._enter(key, pattern, kept)
            self._store(key, of_key)
        if lost:
            logger.warning("dropped partial matches of patterns that are not known: %s", lost)

    # -- events ------------------------------------------------------------------------------------

    def take(
        self, keys: Iterable[Any], times: Iterable[int], events: Iterable[Any]
    ) -> Iterator[list[FoundByPattern]]:
        """What is found in events that come in the order of their time, event by event."""
        event_filter = self._watches.filter()
        get, begins, is_sure = self.runs.get, self._begins, event_filter.is_sure
        look_at, ask = self._conditions.look_at, self._watches.ask
        has_tests = self._watches.has_tests
        moments: dict[tuple[Any, Version], int] = {}
        events = list(events)
        for key, time, event, met in zip(keys, times, events, self._met_by(events, event_filter)):
            if not met:
                continue
            of_key = get(key)
            if of_key is None:
                met &= begins
            else:
                if of_key.wants < 0:
                    self._find_wants(of_key)
                met &= begins | of_key.wants
            if met:
                self._at = None, event
                look_at(event)
                if has_tests:
                    met = ask(met, event)
            if met:
                given = _Given(key, event, time, is_sure(event))
                found = self._give(given, of_key, met, moments)
                if found:
                    yield found

    def _met_by(self, events: list[Any], event_filter: EventFilter) -> Iterable[int]:
        """For each event the bits of the watches that it may meet."""
        try:
            return event_filter.met_by(events)
        except Exception:  # reading a field raised: so that the error names its event
            return self._met_one_by_one(events, event_filter)

    def _met_one_by_one(self, events: list[Any], event_filter: EventFilter) -> Iterator[int]:
        for event in events:
            self._at = None, event
            yield event_filter.met(event)

    def _give(
        self,
        given: _Given,
        of_key: RunsOfKey | None,
        met: int,
        moments: dict[tuple[Any, Version], int],
    ) -> list[FoundByPattern]:
        """Gives an event to the patterns that want it."""
        key, event, time, is_sure = given
        owners, number = self._watches.owners, self._number
        self._number = number + 1
        results: list[FoundByPattern] = []
        begun: list[tuple[ActivePattern, FirstStep]] = []
        in_vain = False
        for pattern in dict.fromkeys([owners[place] for place in places(met)]):
            version = pattern.version
            before = NO_RUNS if of_key is None else of_key.get(version, NO_RUNS)
            if not before:
                if not met & pattern.begins:
                    in_vain = True  # it waited for such an event before
                    continue
                if is_sure and pattern.first is not None:
                    begun.append((pattern, pattern.first))
                    continue
            self._at = version, event
            same_moment = False
            if pattern.steps.has_gaps:
                same_moment = moments.get((key, version)) == time
                moments[key, version] = time
            runs, found = pattern.steps.process(before, key, event, time, number, same_moment)
            if runs or before:
                of_key = RunsOfKey() if of_key is None else of_key
                self._put(key, of_key, pattern, before, runs)
            results += [FoundByPattern(each, version) for each in found]
        if begun:
            of_key = RunsOfKey() if of_key is None else of_key
            self._begin(begun, of_key, given, number)
        if of_key is not None:
            if in_vain:
                self._find_wants(of_key)
            self._store(key, of_key)
        return results

    def _begin(
        self,
        begun: list[tuple[ActivePattern, FirstStep]],
        of_key: RunsOfKey,
        given: _Given,
        number: int,
    ) -> None:
        """Puts down what an event begins for sure, which mostly is the same for many patterns."""
        key, event, time, _ = given
        made: dict[Beginning, tuple[Runs, dict[Any, None]]] = {}
        for pattern, (wants, beginning) in begun:
            known = made.get(beginning)
            if known is None:
                runs = beginning.runs(event, time, number)
                due = pattern.steps.due(runs)
                bucket = {} if due is None else self.calendar.bucket(due)[0]
                known = made[beginning] = runs, bucket
            runs, bucket = known
            of_key[pattern.version] = runs
            of_key.wants |= wants
            bucket[key, pattern.version] = None
            pattern.partial_matches += 1
        self.partial_matches += len(begun)
        self.most_of_a_key = max(self.most_of_a_key, 1)

    def advance(self, now: int) -> Iterator[list[FoundByPattern]]:
        """What is found because time has come to ``now``, key by key."""
        for key, version in self.calendar.until(now):
            pattern, of_key = self.patterns.get(version), self.runs.get(key)
            before = None if of_key is None else of_key.get(version)
            if pattern is None or of_key is None or before is None:
                continue
            self._at = version, None
            runs, found = pattern.steps.advance(before, now)
            if runs is not before:
                if of_key.wants < 0:
                    self._find_wants(of_key)
                self._put(key, of_key, pattern, before, runs)
                self._store(key, of_key)
            if runs:
                self._enter(key, pattern, runs)
            if found:
                yield [FoundByPattern(each, version) for each in found]

    def at_fault(self, error: BaseException) -> Fault:
        """Where an exception was raised."""
        version, event = self._at
        if version is None:
            owner = self._watches.asked_for()
            version = None if owner is None else owner.version
        if version is None:
            return Fault(error, event)
        return Fault(error, event, f" (in version {version.number} of the pattern {version.id!r})")

    def forget_all(self) -> None:
        """Drops all runs: of a batch job, when a key has ended."""
        for key in list(self.runs):
            del self.runs[key]
        self.partial_matches = 0
        for pattern in self.patterns.values():
            pattern.partial_matches = 0

    # -- runs --------------------------------------------------------------------------------------

    def _put(
        self, key: Any, of_key: RunsOfKey, pattern: ActivePattern, before: Runs, runs: Runs
    ) -> None:
        """Keeps what is left of a version's runs."""
        version = pattern.version
        self._count(pattern, len(runs) - len(before))
        if not runs:
            if before:
                del of_key[version]
            return
        of_key[version] = runs
        of_key.wants |= pattern.wants(runs)
        if not before or pattern.steps.has_gaps:
            self._enter(key, pattern, runs)
        if len(runs) > self.most_of_a_key:
            self.most_of_a_key = len(runs)
            if self._most is not None and len(runs) > self._most:
                raise TooManyPartialMatchesError(
                    f"cep.max-partial-matches-per-key: the key {key!r:.80} has {len(runs)} partial "
                    f"matches of version {version.number} of the pattern {version.id!r}; one of "
                    f"them: {match_of(runs[-1][CELL])!r:.400}. Bound the pattern with within(...) "
                    "or until(...), or leave allow_combinations() out"
                )

    def _find_wants(self, of_key: RunsOfKey) -> None:
        """Finds out what the runs wait for: of those that were read from a database; and when an
        event came in vain, so that a key with many patterns does not pay for it at each change."""
        of_key.wants = 0
        for version, runs in of_key.items():
            of_key.wants |= self.patterns[version].wants(runs)

    def _count(self, pattern: ActivePattern, more: int) -> None:
        pattern.partial_matches += more
        self.partial_matches += more

    def _store(self, key: Any, of_key: RunsOfKey) -> None:
        if of_key:
            self.runs[key] = of_key
        else:
            self.runs.pop(key, None)

    def _enter(self, key: Any, pattern: ActivePattern, runs: Runs) -> None:
        due = pattern.steps.due(runs)
        if due is not None:
            self.calendar.add(due, (key, pattern.version))
