"""The patterns of one subtask: which updates count, what is saved of them, and that all of them are
looked for.

Saved are the last update of each id, the same in all subtasks, as broadcast state; and the versions
that only finish what they have begun, by each subtask that still has partial matches of them, as a
union list: after a change of parallelism any subtask may get these partial matches."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.cep.dynamic.dynamic_matcher import DynamicMatcher
from flinkpy.cep.dynamic.pattern_updates import (
    PatternUpdate,
    RefusedPattern,
    restored,
    saved,
    update_of,
)
from flinkpy.cep.dynamic.pattern_versions import PatternVersions, Version, version_of
from flinkpy.core.errors import ProgramError
from flinkpy.operators.context import OperatorContext
from flinkpy.operators.functions import close_function, open_function
from flinkpy.state.snapshots.operator_snapshots import Sharing

LATEST = "_patterns"
FINISHING = "_finishing patterns"


class KnownPatterns:
    """Carries updates out. ``refused`` counts those that could not be."""

    def __init__(self, matcher: DynamicMatcher, context: OperatorContext) -> None:
        store = context.operator_state
        self.refused = 0
        self._matcher, self._context = matcher, context
        self._versions = PatternVersions()
        self._of_id: dict[str, set[Version]] = {}
        self._finishing: set[Version] = set()
        self._latest = store.engine_broadcast(LATEST)
        self._saved_finishing = store.engine_list(FINISHING, Sharing.UNION)
        for id, kept in self._latest.items():
            update = restored(id, *kept)
            self._versions.take(update)
            if update.pattern is not None:
                self._begin(update)
        for update in (restored(*kept) for kept in self._saved_finishing.get()):
            if version_of(update) not in matcher.patterns:
                self._begin(update)
                self._finish(version_of(update))
        store.before_snapshot(self._save_finishing)

    def take(self, given: Iterable[object]) -> list[RefusedPattern]:
        """Carries out what came; gives what was refused."""
        gone: set[Version] = set()
        refused = []
        for each in given:
            update = each if isinstance(each, PatternUpdate) else None
            try:
                update = update_of(each)
                self._carry_out(update, gone)
            except ProgramError as error:
                refused.append(_refused(each, update, str(error)))
        self._remove(gone)
        self.refused += len(refused)
        return refused

    def _carry_out(self, update: PatternUpdate, gone: set[Version]) -> None:
        if not self._versions.counts(update):
            return
        before = set(self._of_id.get(update.id, ()))
        if update.pattern is not None:
            self._begin(update)
        self._versions.take(update)
        self._latest.put(update.id, saved(update))
        if update.finish:
            for version in before - self._finishing - gone:
                self._finish(version)
        else:
            gone |= before

    def _begin(self, update: PatternUpdate) -> None:
        if update.pattern is not None and update.pattern.skip.throws_on_miss:
            raise ProgramError(
                f"{update.pattern.skip!r}: a pattern that comes while the job runs must not fail "
                "it; leave throw_exception_on_miss() out"
            )
        pattern = self._matcher.add(update)
        self._of_id.setdefault(update.id, set()).add(pattern.version)
        for function in pattern.functions:
            open_function(function, self._context)

    def _finish(self, version: Version) -> None:
        self._finishing.add(version)
        self._matcher.finish(version)

    def _remove(self, versions: set[Version]) -> None:
        if not versions:
            return
        for version in versions:
            self._close(version)
            self._of_id[version.id].discard(version)
        self._finishing -= versions
        self._matcher.remove(versions)

    def end_finished(self) -> None:
        """Forgets versions that finish what they have begun, and have ended all of it here."""
        patterns = self._matcher.patterns
        self._remove({each for each in self._finishing if not patterns[each].partial_matches})

    def close(self) -> None:
        """Closes the functions in conditions."""
        for version in self._matcher.patterns:
            self._close(version)

    def _close(self, version: Version) -> None:
        for function in self._matcher.patterns[version].functions:
            close_function(function)

    def _save_finishing(self, checkpoint_id: int, timestamp_ms: int) -> None:
        self.end_finished()
        finishing = [self._matcher.patterns[version].update for version in self._finishing]
        self._saved_finishing.update([(each.id, *saved(each)) for each in finishing])


def _refused(given: object, update: PatternUpdate | None, reason: str) -> RefusedPattern:
    id, version = (None, None) if update is None else (update.id, update.version)
    return RefusedPattern(id, version, reason, f"{given!r:.1000}")
