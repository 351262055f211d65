"""The recorded program: its options, and its transformations in the order in which they were
added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from flinkpy.common.job_listener import JobListeners
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import read
from flinkpy.core.program.coroutines import refuse_coroutines
from flinkpy.core.program.launch_context import note_defined
from flinkpy.core.program.program_line import located
from flinkpy.datastream.slot_sharing_group import SlotSharingGroup
from flinkpy.graph.changes import refuse_added_updates
from flinkpy.graph.transformations import (
    IterationHeadTransformation,
    PartitionTransformation,
    SourceTransformation,
    Transformation,
)


class RecordedProgram:
    """What the calls of one environment have recorded. Streams add to it; ``execute`` submits it
    and starts a new one."""

    def __init__(self, values: dict[str, Any]) -> None:
        # the options by key; ExecutionConfig and CheckpointConfig read and write them too
        self.values = values
        self.transformations: list[Transformation] = []
        self.listeners = JobListeners()
        self._groups: dict[str, SlotSharingGroup] = {}
        self._last_id = 0

    def next_id(self) -> int:
        """The id of the next transformation."""
        self._last_id += 1
        return self._last_id

    def add(self, transformation: Transformation) -> None:
        """Adds an operator. Refuses one that would aggregate updates, if that is certain already,
        and one with a function that nobody would await."""
        refuse_coroutines(functions_of(transformation), repr(transformation.name))
        # AUTOMATIC is resolved when all sources are known
        if read(self.values, options.RUNTIME_MODE) is options.RuntimeMode.STREAMING:
            with located():
                refuse_added_updates(transformation)
        self.transformations.append(transformation)
        note_defined(transformation.where)

    def register_group(self, group: SlotSharingGroup) -> None:
        """Registers a group; operators that name it get its resources."""
        self._groups[group.get_name()] = group

    def slot_sharing_group(self, group: str | SlotSharingGroup) -> SlotSharingGroup:
        """The group itself, or the registered group of that name."""
        return (
            group
            if isinstance(group, SlotSharingGroup)
            else self._groups.get(group, SlotSharingGroup(group))
        )

    @contextmanager
    def only_what_leads_to(self, end: Transformation) -> Iterator[None]:
        """Within the block, limits submission to what leads to ``end`` and what the block itself
        adds.

        Everything else stays for the next ``execute``. What leads to ``end`` counts as executed,
        and is not executed again unless something else needs it. If the block submits nothing, the
        program is as it was before."""
        before = self.transformations
        needed = leading_to([end])
        self.transformations = submitted = [each for each in before if each in needed]
        try:
            yield
        finally:
            self.transformations = (
                before if submitted else [each for each in before if each not in needed]
            )


def functions_of(transformation: Transformation) -> list[Any]:
    """What holds functions of the user's: its operator, its keys, and the partitioners in front of
    it."""
    partitioners = [
        each.partitioning
        for each in transformation.inputs
        if isinstance(each, PartitionTransformation)
    ]
    return [getattr(transformation, "operator", None), *transformation.keys, *partitioners]


def leading_to(ends: Iterable[Transformation]) -> set[Transformation]:
    """These transformations and all that their records come from; for a loop also its way back."""
    found: set[Transformation] = set()
    waiting = list(ends)
    while waiting:
        each = waiting.pop()
        if each not in found:
            found.add(each)
            waiting += each.inputs
            if isinstance(each, IterationHeadTransformation):
                waiting += [each.entry, *([each.tail] if each.tail is not None else [])]
    return found


def endless_source(end: Transformation) -> Transformation | None:
    """A source that ``end`` reads and that has no end of its own; None if there is none, or a
    ``limit`` lies between."""
    from flinkpy.operators.results.limit import LocalLimitOperator

    found: set[Transformation] = set()
    waiting = [end]
    while waiting:
        each = waiting.pop()
        if each in found or isinstance(getattr(each, "operator", None), LocalLimitOperator):
            continue
        found.add(each)
        if isinstance(each, SourceTransformation) and not each.is_bounded:
            return each
        waiting += each.inputs
        if isinstance(each, IterationHeadTransformation):
            waiting.append(each.entry)
    return None
