"""Whether a stream only adds records, or also brings updates: a new version of a key's row whenever
its aggregate has changed.

The number of updates depends on how records are grouped into batches, and only a key's last update
is valid. So updates must not be aggregated, joined, or put into windows. Operators declare whether
they accept them (``takes_changes``); other programs are refused. In BATCH there is only one row per
key, so there are no updates.

What is handed over as a table (``takes_last_results``) has the last row of each key. Behind an
aggregate a ``select`` may have dropped the key, and a ``filter`` may drop the last row and not the
ones before it. So rows are not chosen where they are handed over: the aggregate itself emits only
the last row of each key, as in BATCH, and what follows sees no other. That holds for all running
results (``replaces_results``), also for those that count as records elsewhere: ``reduce``, ``sum``,
``min`` and ``max``. Between them and the table there may be only what looks at one record at a time
(``keeps_nothing``), or takes updates as such. The results of other operators, such as ``process``,
are records of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flinkpy.core.errors import ProgramError
from flinkpy.graph.transformations import (
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
    operator_of,
)


def refuse_added_updates(transformation: Transformation) -> None:
    """Raises ProgramError for an operator that would aggregate updates."""
    operator = operator_of(transformation)
    # a table's input gives the last result of each key only, and that is one record
    if operator is None or operator.takes_last_results:
        return
    takes = operator.takes_changes
    refused = next(
        (each for each in transformation.inputs if not takes.contains_all(each.changelog_mode)),
        None,
    )
    if refused is not None:
        maker = _maker_of_updates(refused)
        raise ProgramError(
            f"{transformation.label} cannot take what {maker.label} gives: that is a new "
            "row for a key whenever its aggregate has changed, and each "
            "would count as one more record. Aggregate in windows there, keep the latest "
            "row of each key in a KeyedProcessFunction between, or, "
            "where the input ends, call env.set_runtime_mode(RuntimeExecutionMode.BATCH) "
            "first, in which each key gives one row"
        )


def _maker_of_updates(transformation: Transformation) -> Transformation:
    """The operator that makes the records of this stream updates."""
    while (operator := operator_of(transformation)) is None or operator.emits_changes is None:
        transformation = next(
            each for each in transformation.inputs if not each.changelog_mode.is_insert_only
        )
    return transformation


def makers_of_tables(order: Sequence[Transformation]) -> set[Transformation]:
    """The operators that emit only the last result of each key, because a table wants them;
    ``order`` has all transformations, inputs first.

    Raises ProgramError if another operator wants each of their results.
    """
    changing: set[Transformation] = set()  # what gives results that are replaced later
    for each in order:
        if _replaces_results(each) or any(
            _passes(each, reader) for reader in each.inputs if reader in changing
        ):
            changing.add(each)
    ends = [each for each in order if _takes_last_results(each)]
    wanted = _leading_to(ends, changing)
    for each in order:
        taken = next((reader for reader in each.inputs if reader in wanted), None)
        if (
            isinstance(each, SideOutputTransformation)
            and taken is not None
            and _replaces_results(taken)
        ):
            continue  # what fails is told as it comes
        if taken is not None and each not in wanted and each not in ends:
            end = ends[0]
            raise ProgramError(
                f"{end.label} takes the last result of each key of {taken.label}, and "
                f"{each.label} takes every one: both cannot be in one job. "
                "Call execute_and_collect(), which gives each result as it comes, or run "
                "them one after the other"
            )
    return {each for each in wanted if _replaces_results(each)}


def is_changing(stream: Transformation) -> bool:
    """Whether its results may be replaced by later ones of the same key."""
    waiting, seen = [stream], set[Transformation]()
    while waiting:
        each = waiting.pop()
        if each in seen:
            continue
        if _replaces_results(each):
            return True
        seen.add(each)
        waiting += [reader for reader in each.inputs if _passes(each, reader)]
    return False


def _leading_to(
    ends: Iterable[Transformation], changing: set[Transformation]
) -> set[Transformation]:
    found: set[Transformation] = set()
    waiting = [reader for end in ends for reader in end.inputs if reader in changing]
    while waiting:
        each = waiting.pop()
        if each in found:
            continue
        found.add(each)
        if not _replaces_results(each):
            waiting += [
                reader for reader in each.inputs if reader in changing and _passes(each, reader)
            ]
    return found


def _passes(transformation: Transformation, reader: Transformation) -> bool:
    """Whether a new version of a record of its input makes a new version of its results."""
    if isinstance(transformation, (PartitionTransformation, UnionTransformation)):
        return True
    operator = operator_of(transformation)
    if operator is not None and operator.keeps_nothing:
        return True
    return not (
        reader.changelog_mode.is_insert_only or transformation.changelog_mode.is_insert_only
    )


def _replaces_results(transformation: Transformation) -> bool:
    operator = operator_of(transformation)
    return operator is not None and operator.replaces_results


def _takes_last_results(transformation: Transformation) -> bool:
    operator = operator_of(transformation)
    return operator is not None and operator.takes_last_results
