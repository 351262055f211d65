"""Loops: ``iterate`` begins one; ``close_with`` sends records back to its beginning (Flink's
IterativeStream).

>>> from flinkpy.datastream import StreamExecutionEnvironment
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> iteration = env.from_collection([5, 8]).iterate()
>>> smaller = iteration.map(lambda number: number - 3).set_parallelism(1)
>>> _ = iteration.close_with(smaller.filter(lambda number: number > 0).set_parallelism(1))
>>> smaller.filter(lambda number: number <= 0).print().get_name()  # doctest: +ELLIPSIS
'Sink: Print to Std. Out'
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flinkpy.common.time import to_milliseconds
from flinkpy.core.options import engine as options
from flinkpy.core.options.schema import read
from flinkpy.datastream.checks import caller, refuse
from flinkpy.datastream.streams.recorded import RecordedStream, RowStream
from flinkpy.graph.transformations import (
    IterationHeadTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

_VIRTUAL = (PartitionTransformation, UnionTransformation, SideOutputTransformation)


@dataclass(frozen=True)
class Iteration:
    """A loop: the stream of its input and of what comes back, and its head, whose tail is set when
    the loop is closed."""

    stream: RowStream
    head: IterationHeadTransformation
    name: str

    def close_with(self, feedback: RecordedStream) -> None:
        """Sends the feedback stream back to the head."""
        from flinkpy.operators.loops.iteration import IterationTailOperator

        self._check(feedback)
        program = feedback.program
        tail = OneInputTransformation(
            id=program.next_id(),
            name=f"IterationSink-{self.head.id}",
            input=feedback.as_rows().transformation,
            operator=IterationTailOperator(self.name),
            where=caller(),
        )
        _place_alike(self.head, tail)
        self.head.tail = tail
        program.add(tail)

    def _check(self, feedback: RecordedStream) -> None:
        head, made = self.head, feedback.transformation
        self.stream.refuse_stranger(feedback, "close_with()")
        if head.tail is not None:
            raise refuse(
                f"close_with(): this loop is closed already ({head.tail.where}); to lead "
                "several streams back, union() them first"
            )
        above = list(_upstream(made))
        if head not in above:
            raise refuse(
                "close_with() takes a stream made from this iteration; what comes from "
                "elsewhere can be joined to the input by union()"
            )
        if isinstance(made, _VIRTUAL) and _nearest_operator(made) in (head, head.entry):
            raise refuse(
                "close_with(): there is no operator in this loop, its records would go round "
                "for ever"
            )
        inner = next(
            (
                each
                for each in above
                if isinstance(each, IterationHeadTransformation)
                and each is not head
                and head in _upstream(each.entry)
            ),
            None,
        )
        if inner is not None:
            raise refuse(
                f"close_with(): the loop begun at {inner.where} lies inside this one; loops "
                "can follow each other, but not be nested"
            )
        default = read(feedback.program.values, options.PARALLELISM)
        mine, its = head.parallelism or default, _nearest_operator(made).parallelism or default
        if mine != its:
            raise refuse(
                f"close_with(): the parallelism of the feedback stream is {its}, that of the "
                f"iteration's input {mine}; "
                f"call set_parallelism({mine}) on the last operator of the loop, "
                f"or put one with parallelism {its} in front of iterate()"
            )


def iterate(stream: RecordedStream, max_wait_time: Any) -> Iteration:
    """Implements ``stream.iterate(max_wait_time)``."""
    from flinkpy.connectors.iteration_head import IterationHeadOperator, IterationSource
    from flinkpy.operators.loops.iteration import IterationEntryOperator

    wait_ms = 0 if max_wait_time is None else to_milliseconds(max_wait_time)
    if isinstance(wait_ms, bool) or not isinstance(wait_ms, int) or wait_ms < 0:
        raise refuse(
            f"iterate() takes a Duration or milliseconds from 0 on, this is {max_wait_time!r:.80}"
        )
    rows, program, where = stream.as_rows(before_edge=True), stream.program, caller()
    above = rows.transformation
    output_type, head_id = above.output_type, program.next_id()
    iteration = f"iteration-{head_id}"
    entry = OneInputTransformation(
        id=program.next_id(),
        name=f"IterationEntry-{head_id}",
        input=above,
        operator=IterationEntryOperator(iteration),
        output_type=output_type,
        where=where,
    )
    source = IterationSource(wait_ms / 1000)
    head = IterationHeadTransformation(
        id=head_id,
        name=f"IterationSource-{head_id}",
        operator=IterationHeadOperator(source, iteration),
        source=source,
        output_type=output_type,
        where=where,
        entry=entry,
    )
    placed = _nearest_operator(above)
    head.parallelism, head.max_parallelism = placed.parallelism, placed.max_parallelism
    head.slot_sharing_group, head.co_location_group = _sharing_group(above), iteration
    _place_alike(head, entry)
    program.add(head)
    both = UnionTransformation(
        id=program.next_id(),
        name="iterate()",
        union=[entry, head],
        output_type=output_type,
        where=where,
    )
    return Iteration(RowStream(program, both), head, iteration)


def _place_alike(head: Transformation, other: Transformation) -> None:
    """Puts subtasks with the same index into one slot, because they exchange records through
    memory."""
    other.parallelism, other.max_parallelism = head.parallelism, head.max_parallelism
    other.slot_sharing_group = head.slot_sharing_group
    other.co_location_group = head.co_location_group


def _nearest_operator(transformation: Transformation) -> Transformation:
    """The operator whose records pass through partitionings, side outputs and unions (of a union,
    the first input's)."""
    while isinstance(transformation, _VIRTUAL):
        transformation = transformation.inputs[0]
    return transformation


def _sharing_group(transformation: Transformation) -> str:
    """The slot sharing group that the graph will give to a straight line of inputs; else the
    default group."""
    from flinkpy.graph.job_graph import DEFAULT_SLOT_SHARING_GROUP

    while transformation.slot_sharing_group is None and len(transformation.inputs) == 1:
        transformation = transformation.inputs[0]
    return transformation.slot_sharing_group or DEFAULT_SLOT_SHARING_GROUP


def _upstream(transformation: Transformation) -> Iterator[Transformation]:
    """The transformation and everything it is derived from, each once."""
    seen: set[int] = set()
    stack = [transformation]
    while stack:
        each = stack.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            stack.extend(each.inputs)
