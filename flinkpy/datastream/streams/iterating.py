"""Loops: ``iterate`` begins one, ``close_with`` leads back to its beginning what shall go round again (Flink's IterativeStream).

>>> from flinkpy.datastream import StreamExecutionEnvironment
>>> env = StreamExecutionEnvironment.get_execution_environment()
>>> iteration = env.from_collection([5, 8]).iterate()
>>> smaller = iteration.map(lambda number: number - 3).set_parallelism(1)
>>> _ = iteration.close_with(smaller.filter(lambda number: number > 0).set_parallelism(1))
>>> smaller.filter(lambda number: number <= 0).print().get_name()  # doctest: +ELLIPSIS
'Sink: Print to Std. Out'
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from flinkpy.common.time import to_milliseconds
from flinkpy.datastream.checks import caller, refuse
from flinkpy.datastream.data_stream import DataStream
from flinkpy.graph.transformations import (
    IterationHeadTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    Transformation,
    UnionTransformation,
)

if TYPE_CHECKING:
    from flinkpy.datastream.stream_execution_environment import StreamExecutionEnvironment

_VIRTUAL = (PartitionTransformation, UnionTransformation, SideOutputTransformation)


class IterativeStream(DataStream):
    """Given by ``iterate``: the input, and what comes back. Has the parallelism of the input.

    When the input has ended, the loop goes on until nothing is in it any more, and ``max_wait_time`` longer; a job whose sources end so ends too.
    Event time in the loop is that of the input, and when that has ended stands at 2**62 or above, beyond all time; records that come back keep their
    timestamps, and may be late. The way back is a queue in memory without bounds; while much is in it no further input is taken.

    Loops can follow each other, but not lie one in the other. A program that has one cannot have checkpoints (records on their way back are part of
    none), and cannot run in runtime mode BATCH.

    >>> from flinkpy.datastream import StreamExecutionEnvironment
    >>> iteration = StreamExecutionEnvironment.get_execution_environment().from_collection([3]).iterate()
    >>> fewer = iteration.map(lambda number: number - 1)
    >>> again = iteration.close_with(fewer.filter(lambda number: number > 0))
    >>> fewer.take(10)
    [2, 1, 0]
    """

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation, head: IterationHeadTransformation, iteration: str) -> None:
        super().__init__(env, transformation)
        self._head, self._iteration = head, iteration

    def close_with(self, feedback_stream: DataStream) -> DataStream:
        """The records of this stream go back to the beginning of the loop. It is made from this iteration, and has its parallelism.

        Gives back ``feedback_stream``. Raises ProgramError for a stream from elsewhere or of another parallelism, and when called twice.
        """
        from flinkpy.operators.loops.iteration import IterationTailOperator

        self._check(feedback_stream)
        tail = OneInputTransformation(
            id=self._env._next_id(), name=f"IterationSink-{self._head.id}", input=feedback_stream._with_rows()._transformation,
            operator=IterationTailOperator(self._iteration), where=caller())
        _place_alike(self._head, tail)
        self._head.tail = tail
        self._env._add(tail)
        return feedback_stream

    def _check(self, feedback: Any) -> None:
        head = self._head
        if not isinstance(feedback, DataStream):
            raise refuse(f"close_with() takes a stream, this is {feedback!r:.80}")
        self._refuse_stranger(feedback, "close_with()")
        if head.tail is not None:
            raise refuse(f"close_with(): this loop is closed already ({head.tail.where}); to lead several streams back, union() them first")
        above = list(_upstream(feedback._transformation))
        if head not in above:
            raise refuse("close_with() takes a stream made from this iteration; what comes from elsewhere can be joined to the input by union()")
        if isinstance(feedback._transformation, _VIRTUAL) and _nearest_operator(feedback._transformation) in (head, head.entry):
            raise refuse("close_with(): there is no operator in this loop, its records would go round for ever")
        inner = next((each for each in above if isinstance(each, IterationHeadTransformation) and each is not head
                      and head in _upstream(each.entry)), None)
        if inner is not None:
            raise refuse(f"close_with(): the loop begun at {inner.where} lies inside this one; loops can follow each other, but not be nested")
        default = self._env.get_parallelism()
        mine, its = head.parallelism or default, _nearest_operator(feedback._transformation).parallelism or default
        if mine != its:
            raise refuse(f"close_with(): the parallelism of the feedback stream is {its}, that of the iteration's input {mine}; "
                         f"call set_parallelism({mine}) on the last operator of the loop, or put one with parallelism {its} in front of iterate()")


def iterate(stream: DataStream, max_wait_time: Any) -> IterativeStream:
    """``stream.iterate(max_wait_time)``."""
    from flinkpy.connectors.iteration_head import IterationHeadOperator, IterationSource
    from flinkpy.operators.loops.iteration import IterationEntryOperator

    wait_ms = 0 if max_wait_time is None else to_milliseconds(max_wait_time)
    if isinstance(wait_ms, bool) or not isinstance(wait_ms, int) or wait_ms < 0:
        raise refuse(f"iterate() takes a Duration or milliseconds from 0 on, this is {max_wait_time!r:.80}")
    rows, env, where = stream._with_rows(before_edge=True), stream._env, caller()
    above = rows._transformation
    output_type, head_id = above.output_type, env._next_id()
    iteration = f"iteration-{head_id}"
    entry = OneInputTransformation(id=env._next_id(), name=f"IterationEntry-{head_id}", input=above, operator=IterationEntryOperator(iteration),
                                   output_type=output_type, where=where)
    source = IterationSource(wait_ms / 1000)
    head = IterationHeadTransformation(
        id=head_id, name=f"IterationSource-{head_id}", operator=IterationHeadOperator(source, iteration), source=source, output_type=output_type,
        where=where, entry=entry)
    placed = _nearest_operator(above)
    head.parallelism, head.max_parallelism = placed.parallelism, placed.max_parallelism
    head.slot_sharing_group, head.co_location_group = _sharing_group(above), iteration
    _place_alike(head, entry)
    env._add(head)
    both = UnionTransformation(id=env._next_id(), name="iterate()", union=[entry, head], output_type=output_type, where=where)
    return IterativeStream(env, both, head, iteration)


def refuse_checkpoints(transformations: Iterable[Transformation]) -> None:
    """For a program that wants checkpoints: raises ProgramError where it has a loop (as Flink does)."""
    for each in transformations:
        if isinstance(each, IterationHeadTransformation):
            raise refuse(f"checkpoints are not possible with the loop begun by iterate() at {each.where}: records on their way back would be part of "
                         "none, and lost after a failure. Leave enable_checkpointing() out")


def _place_alike(head: Transformation, other: Transformation) -> None:
    """Subtask for subtask in one slot, as they speak through memory."""
    other.parallelism, other.max_parallelism = head.parallelism, head.max_parallelism
    other.slot_sharing_group, other.co_location_group = head.slot_sharing_group, head.co_location_group


def _nearest_operator(transformation: Transformation) -> Transformation:
    """The operator that stands behind partitionings, side outputs and unions (there the first one)."""
    while isinstance(transformation, _VIRTUAL):
        transformation = transformation.inputs[0]
    return transformation


def _sharing_group(transformation: Transformation) -> str:
    """As the graph will say it of the input, where that is a straight line; else the default one, where everything can be."""
    from flinkpy.graph.job_graph import DEFAULT_SLOT_SHARING_GROUP

    while transformation.slot_sharing_group is None and len(transformation.inputs) == 1:
        transformation = transformation.inputs[0]
    return transformation.slot_sharing_group or DEFAULT_SLOT_SHARING_GROUP


def _upstream(transformation: Transformation) -> Iterator[Transformation]:
    """It and all it is made from, each once."""
    seen: set[int] = set()
    stack = [transformation]
    while stack:
        each = stack.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            stack.extend(each.inputs)
