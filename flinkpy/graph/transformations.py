"""Transformations: the program as the API records it, before a graph is built. Each refers to its
inputs; the environment keeps the sinks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flinkpy.common.changelog_mode import INSERT_ONLY, ChangelogMode
from flinkpy.graph.operator_port import ChainingStrategy, Operator
from flinkpy.graph.partitioning import KeySpec, Partitioning
from flinkpy.graph.resources import ANY, ResourceProfile


@dataclass(eq=False, kw_only=True)
class Transformation:
    """What all nodes of the program have. ``None`` means not set: the default applies."""

    id: int
    name: str
    parallelism: int | None = None
    max_parallelism: int | None = None
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    slot_sharing_group: str | None = None  # None: the common group of the inputs, else "default"
    co_location_group: str | None = None
    resources: ResourceProfile = ANY
    buffer_timeout_ms: int | None = None
    chaining: ChainingStrategy | None = None  # overrides the operator's own
    output_type: Any = None  # a flinkpy.common.typeinfo.TypeInformation, or None
    where: str | None = None  # file:line of the user's program, for error messages
    # which changes its records are (``flinkpy.graph.changes``)
    changelog_mode: ChangelogMode = field(init=False, repr=False)

    def __post_init__(self) -> None:
        operator = operator_of(self)
        emits = None if operator is None else operator.emits_changes
        if emits is None:
            emits = INSERT_ONLY
            for each in self.inputs:
                emits |= each.changelog_mode
        self.changelog_mode = emits

    @property
    def inputs(self) -> list[Transformation]:
        return []

    @property
    def keys(self) -> tuple[KeySpec | None, ...]:
        """How each of its inputs is keyed."""
        return ()

    @property
    def label(self) -> str:
        """Its name and the line of the program, for error messages."""
        return f"{self.name!r}" + (f" ({self.where})" if self.where else "")


@dataclass(eq=False, kw_only=True)
class SourceTransformation(Transformation):
    """``operator`` is a SourceOperator; ``source`` the flinkpy.connectors.source_api.source.Source
    whose enumerator the JobMaster runs, or None."""

    operator: Operator
    source: Any = None
    is_bounded: bool = True


@dataclass(eq=False, kw_only=True)
class IterationHeadTransformation(SourceTransformation):
    """The head of a loop, as a second source of the loop's body. The way back from ``tail`` is no
    edge: it is a channel in memory."""

    entry: Transformation  # where the loop's input comes in
    tail: Transformation | None = None  # None until the loop is closed


@dataclass(eq=False, kw_only=True)
class OneInputTransformation(Transformation):
    """An operator with one input; also a sink, which has no consumers."""

    input: Transformation
    operator: Operator
    key: KeySpec | None = None

    @property
    def keys(self) -> tuple[KeySpec | None, ...]:
        return (self.key,)

    @property
    def inputs(self) -> list[Transformation]:
        return [self.input]


@dataclass(eq=False, kw_only=True)
class TwoInputTransformation(Transformation):
    input1: Transformation
    input2: Transformation
    operator: Operator
    key1: KeySpec | None = None
    key2: KeySpec | None = None

    @property
    def keys(self) -> tuple[KeySpec | None, ...]:
        return (self.key1, self.key2)

    @property
    def inputs(self) -> list[Transformation]:
        return [self.input1, self.input2]


@dataclass(eq=False, kw_only=True)
class PartitionTransformation(Transformation):
    """Virtual: becomes the partitioning of an edge."""

    input: Transformation
    partitioning: Partitioning

    @property
    def inputs(self) -> list[Transformation]:
        return [self.input]


@dataclass(eq=False, kw_only=True)
class UnionTransformation(Transformation):
    """Virtual: becomes an edge per input."""

    union: list[Transformation] = field(default_factory=list)

    @property
    def inputs(self) -> list[Transformation]:
        return self.union


@dataclass(eq=False, kw_only=True)
class SideOutputTransformation(Transformation):
    """Virtual: the edge carries this side output instead of the main output."""

    input: Transformation
    tag_id: str

    @property
    def inputs(self) -> list[Transformation]:
        return [self.input]


def operator_of(transformation: Transformation) -> Operator | None:
    """Its operator; None if it only says where records go."""
    if isinstance(
        transformation, (SourceTransformation, OneInputTransformation, TwoInputTransformation)
    ):
        return transformation.operator
    return None
