"""The settings of an operator: its name, uid, parallelism, slot sharing group and chaining."""

from __future__ import annotations

from typing import TypeVar

from flinkpy.common.execution_config import max_parallelism_of, positive
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.slot_sharing_group import SlotSharingGroup
from flinkpy.datastream.streams.recorded import RecordedStream
from flinkpy.graph.operator_port import ChainingStrategy
from flinkpy.graph.transformations import (
    OneInputTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
)

Self = TypeVar("Self", bound="OperatorSettings")

_OPERATORS = (SourceTransformation, OneInputTransformation, TwoInputTransformation)


def operator_of(stream: RecordedStream, call: str) -> Transformation:
    """The operator that makes the stream. Refuses a stream that comes directly from a partitioning
    or a union."""
    made = stream.transformation
    if not isinstance(made, _OPERATORS):
        raise refuse(
            f"{call} belongs to an operator, and a stream fresh from {made.name} is none: "
            f"call it on the operator before, or on the one that reads the stream"
        )
    return made


class OperatorSettings:
    """The settings that streams and sinks share. Setters return the object itself, and raise
    ProgramError for invalid values."""

    def __init__(self, recorded: RecordedStream) -> None:
        self._recorded = recorded

    @property
    def recorded(self) -> RecordedStream:
        """The recorded stream behind it, for extensions and tests: its transformation, columns and
        program."""
        return self._recorded

    def _operator(self, call: str) -> Transformation:
        return operator_of(self.recorded, call)

    def _with_helpers(self, call: str) -> tuple[Transformation, ...]:
        return (self._operator(call), *self.recorded.helpers)

    def name(self: Self, name: str) -> Self:
        """Sets the operator's name in plans, logs and metrics."""
        if not isinstance(name, str) or not name:
            raise refuse(f"name() takes text that is not empty, this is {name!r:.80}")
        self._operator("name()").name = name
        return self

    def get_name(self) -> str:
        """The operator's name."""
        return self.recorded.transformation.name

    def uid(self: Self, uid: str) -> Self:
        """Sets an id that stays the same when the program changes, so that the operator finds its
        state again. It must be unique in the job."""
        if not isinstance(uid, str) or not uid:
            raise refuse(f"uid() takes text that is not empty, this is {uid!r:.80}")
        self._operator("uid()").uid = uid
        return self

    def set_uid_hash(self: Self, uid_hash: str) -> Self:
        """Sets the operator id itself: 32 hex digits, as logs and plans show it."""
        if (
            not isinstance(uid_hash, str)
            or len(uid_hash) != 32
            or set(uid_hash.lower()) - set("0123456789abcdef")
        ):
            raise refuse(
                f"set_uid_hash() takes 32 hex digits, this is {uid_hash!r:.80}; uid() takes "
                "any text"
            )
        self._operator("set_uid_hash()").uid_hash = uid_hash.lower()
        return self

    def set_description(self: Self, description: str) -> Self:
        """Sets a longer text for the plan."""
        self._operator("set_description()").description = description
        return self

    def set_parallelism(self: Self, parallelism: int) -> Self:
        """Sets how many subtasks run the operator."""
        if self.recorded.is_non_parallel and parallelism != 1:
            raise refuse(
                f"{self.get_name()} sees the records of all keys, its parallelism must be 1, "
                f"not {parallelism!r}; "
                "key_by(...) and window(...) share the work out"
            )
        with located():
            number = positive(parallelism, "parallelism")
        for transformation in self._with_helpers("set_parallelism()"):
            transformation.parallelism = number
        return self

    def set_max_parallelism(self: Self, max_parallelism: int) -> Self:
        """Sets the number of key groups; no later parallelism can be greater."""
        if self.recorded.is_non_parallel and max_parallelism != 1:
            raise refuse(
                f"{self.get_name()} sees the records of all keys, its max parallelism must be "
                f"1, not {max_parallelism!r}"
            )
        with located():
            number = max_parallelism_of(max_parallelism)
        for transformation in self._with_helpers("set_max_parallelism()"):
            transformation.max_parallelism = number
        return self

    def force_non_parallel(self: Self) -> Self:
        """Sets parallelism and max parallelism to 1."""
        return self.set_parallelism(1).set_max_parallelism(1)

    def set_buffer_timeout(self: Self, timeout_millis: int) -> Self:
        """Sets how many milliseconds at most after its first record a batch of this operator's
        output is sent; 0: at once; -1: only when it is full or the task is idle."""
        if (
            isinstance(timeout_millis, bool)
            or not isinstance(timeout_millis, int)
            or timeout_millis < -1
        ):
            raise refuse(
                f"set_buffer_timeout() takes milliseconds, 0 or -1, this is {timeout_millis!r}"
            )
        self._operator("set_buffer_timeout()").buffer_timeout_ms = timeout_millis
        return self

    def slot_sharing_group(self: Self, slot_sharing_group: str | SlotSharingGroup) -> Self:
        """Sets the slot sharing group. Operators of different groups never share a slot. A
        :class:`SlotSharingGroup` also says what the slot must have."""
        is_group = isinstance(slot_sharing_group, SlotSharingGroup)
        if not is_group and (not isinstance(slot_sharing_group, str) or not slot_sharing_group):
            raise refuse(
                "slot_sharing_group() takes a name or a SlotSharingGroup, this is "
                f"{slot_sharing_group!r:.80}"
            )
        group: SlotSharingGroup = self.recorded.program.slot_sharing_group(slot_sharing_group)
        for transformation in self._with_helpers("slot_sharing_group()"):
            transformation.slot_sharing_group = group.get_name()
            transformation.resources = group.profile()
        return self

    def disable_chaining(self: Self) -> Self:
        """Runs the operator in a task of its own."""
        self._operator("disable_chaining()").chaining = ChainingStrategy.NEVER
        return self

    def start_new_chain(self: Self) -> Self:
        """Begins a new chain: the operator is not chained to the one before it, but the next ones
        may be chained to it."""
        self._operator("start_new_chain()").chaining = ChainingStrategy.HEAD
        return self
