"""The StreamGraph: the program as nodes and edges, one node per operator. The API records
partitionings, unions and side outputs as transformations; here they are virtual, and become
properties of the edges that pass through them.

All defaults (parallelism, max parallelism, partitioning, slot sharing group, buffer timeout) are
set here, so code that reads a StreamGraph need not decide them again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from flinkpy.core.errors import ProgramError
from flinkpy.core.keys import MAX_PARALLELISM_LIMIT, default_max_parallelism
from flinkpy.core.options.engine import AggregatePhases, RuntimeMode
from flinkpy.graph.changes import makers_of_tables, refuse_added_updates
from flinkpy.graph.job_graph import DEFAULT_SLOT_SHARING_GROUP, ResultPartitionType
from flinkpy.graph.operator_port import ONE_PHASE, ChainingStrategy, Operator, PhaseRule, TwoPhases
from flinkpy.graph.partitioning import FORWARD, REBALANCE, Partitioning, PartitioningKind
from flinkpy.graph.resources import ANY, ResourceProfile
from flinkpy.graph.transformations import (
    IterationHeadTransformation,
    OneInputTransformation,
    PartitionTransformation,
    SideOutputTransformation,
    SourceTransformation,
    Transformation,
    TwoInputTransformation,
    UnionTransformation,
)


class NodeKind(Enum):
    SOURCE = "SOURCE"
    ONE_INPUT = "ONE_INPUT"
    TWO_INPUT = "TWO_INPUT"


@dataclass(frozen=True, eq=False)
class StreamEdge:
    """A stream from one operator to one input of another. Edges are compared by identity, because a
    union may read the same stream twice."""

    source: int
    target: int
    input_index: int
    partitioning: Partitioning
    side_tag: str | None
    buffer_timeout_ms: int
    type_info: Any
    partition_type: ResultPartitionType


@dataclass(eq=False)
class StreamNode:
    """One operator with all its settings; chaining is decided later."""

    id: int
    name: str
    kind: NodeKind
    operator: Operator
    parallelism: int
    max_parallelism: int
    slot_sharing_group: str
    co_location_group: str | None
    chaining: ChainingStrategy
    uid: str | None = None
    uid_hash: str | None = None
    description: str | None = None
    where: str | None = None
    source: Any = None  # the Source whose enumerator the JobMaster runs, or None
    is_bounded: bool = True
    key_kind: str | None = None  # which keys its state is of, if their types were declared
    # Of the operator it feeds, which has the id and settings from the program
    # (``flinkpy.graph.operator_port``)
    is_local_phase: bool = False
    sends_partials: bool = False  # a local phase whose output only the merging phase can read
    max_parallelism_is_set: bool = False  # by the program, and not derived from the parallelism
    in_edges: list[StreamEdge] = field(default_factory=list)
    out_edges: list[StreamEdge] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Its name in error messages: ``'Map' (job.py:12)``."""
        return f"{self.name!r}" + (f" ({self.where})" if self.where else "")

    @property
    def is_sink(self) -> bool:
        """Whether no operator reads its output."""
        return not self.out_edges and self.kind is not NodeKind.SOURCE


@dataclass(eq=False)
class StreamGraph:
    """The nodes of a program by id, in topological order (inputs first)."""

    name: str
    nodes: dict[int, StreamNode]
    chaining: bool
    runtime_mode: RuntimeMode  # STREAMING or BATCH; AUTOMATIC has been resolved
    is_bounded: bool
    # by slot sharing group; a group without demands is absent
    resources: dict[str, ResourceProfile]

    @property
    def edges(self) -> list[StreamEdge]:
        return [edge for node in self.nodes.values() for edge in node.in_edges]


def build_stream_graph(
    transformations: Iterable[Transformation],
    *,
    parallelism: int = 1,
    max_parallelism: int | None = None,
    chaining: bool = True,
    buffer_timeout_ms: int = 100,
    runtime_mode: RuntimeMode = RuntimeMode.STREAMING,
    name: str = "flinkpy job",
    batch_form: Callable[[Operator], Operator] = lambda operator: operator,
    phases: PhaseRule = ONE_PHASE,
    last_results: Callable[[Operator], Operator] = lambda operator: operator,
) -> StreamGraph:
    """The graph of everything that ``transformations`` depend on; the sinks are enough, and naming
    others too is harmless. In BATCH mode ``batch_form`` returns the operator that runs in place of
    another. ``phases`` says which part of an operator runs before an exchange. In STREAMING mode
    ``last_results`` returns the operator that runs in place of one whose results a table takes.

    Raises ProgramError for programs that cannot run: an empty program, a forward edge between
    different parallelisms, a parallelism above the max parallelism, duplicate uids, contradicting
    resources, an unbounded source in BATCH mode, an aggregate of updates in STREAMING mode."""
    order = _topological(transformations)
    is_bounded = all(each.is_bounded for each in order if isinstance(each, SourceTransformation))
    mode = decide_runtime_mode(runtime_mode, order)
    _check_loops(order, mode)
    if mode is RuntimeMode.STREAMING:
        for transformation in order:
            refuse_added_updates(transformation)
    forms = _Forms(order, mode, batch_form, last_results)
    builder = _Builder(parallelism, max_parallelism, buffer_timeout_ms, mode, forms, phases)
    for transformation in order:
        builder.add(transformation)
    if not builder.nodes:
        raise ProgramError(
            "the program has no operators: define a source and a sink before execute()"
        )
    _refuse_duplicate_uids(builder.nodes.values())
    _refuse_shared_property(builder.nodes.values())
    return StreamGraph(
        name, builder.nodes, chaining, mode, is_bounded, _resources_by_group(order, builder.nodes)
    )


def decide_runtime_mode(
    wanted: RuntimeMode, transformations: Iterable[Transformation]
) -> RuntimeMode:
    """The mode a program runs in; only this function resolves AUTOMATIC. That is BATCH if all
    sources are bounded and there is no loop. Raises ProgramError for BATCH with an unbounded
    source."""
    transformations = list(transformations)
    unbounded = [
        each
        for each in transformations
        if isinstance(each, SourceTransformation) and not each.is_bounded
    ]
    if wanted is RuntimeMode.AUTOMATIC:
        loops = any(isinstance(each, IterationHeadTransformation) for each in transformations)
        return RuntimeMode.STREAMING if unbounded or loops else RuntimeMode.BATCH
    if wanted is RuntimeMode.BATCH and unbounded:
        raise ProgramError(
            f"runtime mode BATCH needs bounded sources, but {unbounded[0].label} never "
            "ends; give the source an end (of Kafka: set_bounded()), or "
            "use RuntimeExecutionMode.STREAMING or AUTOMATIC"
        )
    return wanted


class _Upstream(NamedTuple):
    """A real node as seen through virtual ones. None: no virtual node sets the field."""

    node: StreamNode
    partitioning: Partitioning | None = None
    side_tag: str | None = None


class _Forms:
    """Which operator runs in place of a transformation's own."""

    def __init__(
        self,
        order: Sequence[Transformation],
        mode: RuntimeMode,
        batch_form: Callable[[Operator], Operator],
        last_results: Callable[[Operator], Operator],
    ) -> None:
        self._batch_form = batch_form if mode is RuntimeMode.BATCH else None
        self._last_results = last_results
        self._makers = makers_of_tables(order) if mode is RuntimeMode.STREAMING else frozenset()

    def of(self, transformation: Transformation, operator: Operator) -> Operator:
        """The form of the operator that ``transformation`` names."""
        if self._batch_form is not None:
            return self._batch_form(operator)
        return self._last_results(operator) if transformation in self._makers else operator


class _Builder:
    """Adds transformations one by one, inputs first."""

    def __init__(
        self,
        parallelism: int,
        max_parallelism: int | None,
        buffer_timeout_ms: int,
        mode: RuntimeMode,
        forms: _Forms,
        phases: PhaseRule,
    ) -> None:
        self._forms = forms
        self._parallelism, self._max_parallelism = parallelism, max_parallelism
        self._buffer_timeout_ms = buffer_timeout_ms
        # In BATCH every edge that crosses the network blocks, forward ones too: a pipelined edge
        # beside a blocking detour (a stream joined with its own aggregate) would make both wait for
        # each other.
        self._partition_type = (
            ResultPartitionType.BLOCKING
            if mode is RuntimeMode.BATCH
            else ResultPartitionType.PIPELINED
        )
        self._phases = phases
        self._is_batch = mode is RuntimeMode.BATCH
        self.nodes: dict[int, StreamNode] = {}
        # by id(transformation): the real nodes it stands for
        self._seen: dict[int, list[_Upstream]] = {}
        self._timeouts: dict[int, int] = {}
        self._types: dict[int, Any] = {}

    def add(self, transformation: Transformation) -> None:
        self._seen[id(transformation)] = self._expand(transformation)

    def _expand(self, transformation: Transformation) -> list[_Upstream]:
        upstream = [each for reader in transformation.inputs for each in self._seen[id(reader)]]
        # the partitioning nearest to the consumer wins
        if isinstance(transformation, PartitionTransformation):
            return [each._replace(partitioning=transformation.partitioning) for each in upstream]
        if isinstance(transformation, SideOutputTransformation):
            return [each._replace(side_tag=transformation.tag_id) for each in upstream]
        if isinstance(transformation, UnionTransformation):
            return upstream
        node = self._node(transformation, upstream)
        phases = self._phases_of(transformation, node, upstream)
        for input_index, reader in enumerate(transformation.inputs):
            for each in self._seen[id(reader)]:
                self._connect(
                    each if phases is None else self._local_phase(phases, each, node),
                    node,
                    input_index,
                )
        if phases is not None:
            node.operator = self._forms.of(transformation, phases.merging)
        return [_Upstream(node)]

    def _phases_of(
        self, transformation: Transformation, node: StreamNode, upstream: Sequence[_Upstream]
    ) -> TwoPhases | None:
        """The two phases, if what is aggregated by key is exchanged by key. In AUTO mode not
        between two single tasks, where nothing is saved."""
        if not isinstance(transformation, OneInputTransformation):
            return None
        strategy = self._phases.strategy_of(transformation.id)
        is_of_single_tasks = (
            node.parallelism == max(each.node.parallelism for each in upstream) == 1
        )
        if strategy is AggregatePhases.AUTO and is_of_single_tasks:
            return None
        found = self._phases.of(transformation.operator, strategy)
        if found is None or (self._is_batch and not found.in_batch):
            return None
        by_key = all(
            each.partitioning is not None and each.partitioning.kind is PartitioningKind.HASH
            for each in upstream
        )
        return found if by_key or found.key is None else None

    def _local_phase(self, phases: TwoPhases, upstream: _Upstream, target: StreamNode) -> _Upstream:
        """The sender's phase of ``target``: a node before it. Its id is negative, because ids from
        the program are positive."""
        source = upstream.node
        node = StreamNode(
            -len(self.nodes),
            f"Local{target.name}",
            NodeKind.ONE_INPUT,
            phases.local,
            source.parallelism,
            source.max_parallelism,
            source.slot_sharing_group,
            source.co_location_group,
            ChainingStrategy.ALWAYS,
            where=target.where,
            is_local_phase=True,
            sends_partials=phases.is_partial,
        )
        self.nodes[node.id] = node
        # moved behind it, because inputs come first
        self.nodes[target.id] = self.nodes.pop(target.id)
        self._timeouts[node.id], self._types[node.id] = self._timeouts[source.id], None
        self._connect(upstream._replace(partitioning=FORWARD), node, 0)
        key, given = phases.key, upstream.partitioning
        return _Upstream(node, given if key is None else Partitioning(PartitioningKind.HASH, key))

    def _node(self, transformation: Transformation, upstream: list[_Upstream]) -> StreamNode:
        if transformation.id in self.nodes:
            other = self.nodes[transformation.id].label
            raise ProgramError(
                f"two transformations have the id {transformation.id}: {other} and "
                f"{transformation.label}"
            )
        parallelism = transformation.parallelism or self._parallelism
        operator, kind = _operator_and_kind(transformation)
        operator = self._forms.of(transformation, operator)
        declared = operator.chaining
        node = StreamNode(
            transformation.id,
            _display_name(transformation),
            kind,
            operator,
            parallelism,
            self._max_parallelism_of(transformation, parallelism),
            _slot_sharing_group(transformation, upstream),
            transformation.co_location_group,
            transformation.chaining or declared,
            transformation.uid,
            transformation.uid_hash,
            transformation.description,
            transformation.where,
        )
        node.max_parallelism_is_set = self._asked_max_parallelism(transformation) is not None
        if isinstance(transformation, SourceTransformation):
            node.source, node.is_bounded = transformation.source, transformation.is_bounded
        node.key_kind = next(
            (key.kind for key in transformation.keys if key is not None and key.kind is not None),
            None,
        )
        self.nodes[node.id] = node
        timeout = transformation.buffer_timeout_ms
        self._timeouts[node.id] = self._buffer_timeout_ms if timeout is None else timeout
        self._types[node.id] = transformation.output_type
        return node

    def _asked_max_parallelism(self, transformation: Transformation) -> int | None:
        return transformation.max_parallelism or self._max_parallelism or None

    def _max_parallelism_of(self, transformation: Transformation, parallelism: int) -> int:
        chosen = self._asked_max_parallelism(transformation) or default_max_parallelism(parallelism)
        if parallelism < 1:
            raise ProgramError(
                f"{transformation.label} has parallelism {parallelism}; it must be at least 1"
            )
        if not 1 <= chosen <= MAX_PARALLELISM_LIMIT:
            raise ProgramError(
                f"{transformation.label} has max parallelism {chosen}; it must be between 1 "
                f"and {MAX_PARALLELISM_LIMIT}"
            )
        if parallelism > chosen:
            raise ProgramError(
                f"{transformation.label} has parallelism {parallelism}, more than its max "
                f"parallelism {chosen}; "
                "lower it with set_parallelism or raise set_max_parallelism"
            )
        return chosen

    def _connect(self, upstream: _Upstream, target: StreamNode, input_index: int) -> None:
        source = upstream.node
        partitioning = upstream.partitioning or (
            FORWARD if source.parallelism == target.parallelism else REBALANCE
        )
        if (
            partitioning.kind is PartitioningKind.FORWARD
            and source.parallelism != target.parallelism
        ):
            raise ProgramError(
                f"forward() joins {source.label} with parallelism {source.parallelism} to "
                f"{target.label} with parallelism {target.parallelism}; "
                "make them equal with set_parallelism, or use rebalance() or rescale()"
            )
        if partitioning.kind is PartitioningKind.HASH:
            partitioning = replace(
                partitioning,
                max_parallelism=target.max_parallelism,
                reads_all_keys=not target.operator.reads_keys,
            )
        # Side outputs have their own type, which only the API's OutputTag knows.
        edge = StreamEdge(
            source.id,
            target.id,
            input_index,
            partitioning,
            upstream.side_tag,
            self._timeouts[source.id],
            None if upstream.side_tag is not None else self._types[source.id],
            self._partition_type,
        )
        source.out_edges.append(edge)
        target.in_edges.append(edge)


def _topological(ends: Iterable[Transformation]) -> list[Transformation]:
    """All transformations that the ends depend on, inputs first. Not recursive, because programs
    may have thousands of steps."""
    order: list[Transformation] = []
    entered: set[int] = set()
    for end in ends:
        stack: list[tuple[Transformation, bool]] = [(end, False)]
        while stack:
            transformation, inputs_done = stack.pop()
            if inputs_done:
                order.append(transformation)
            elif id(transformation) not in entered:
                entered.add(id(transformation))
                stack.append((transformation, True))
                stack.extend((reader, False) for reader in reversed(transformation.inputs))
    return order


def _operator_and_kind(transformation: Transformation) -> tuple[Operator, NodeKind]:
    if isinstance(transformation, SourceTransformation):
        return transformation.operator, NodeKind.SOURCE
    if isinstance(transformation, OneInputTransformation):
        return transformation.operator, NodeKind.ONE_INPUT
    if isinstance(transformation, TwoInputTransformation):
        return transformation.operator, NodeKind.TWO_INPUT
    raise ProgramError(
        f"the graph does not know transformations of type {type(transformation).__name__}"
    )


def _display_name(transformation: Transformation) -> str:
    is_plain_source = isinstance(
        transformation, SourceTransformation
    ) and not transformation.name.startswith("Source: ")
    return f"Source: {transformation.name}" if is_plain_source else transformation.name


def _slot_sharing_group(transformation: Transformation, upstream: Sequence[_Upstream]) -> str:
    """The transformation's own group, else the common group of all inputs, else the default."""
    if transformation.slot_sharing_group is not None:
        return transformation.slot_sharing_group
    groups = {each.node.slot_sharing_group for each in upstream}
    return groups.pop() if len(groups) == 1 else DEFAULT_SLOT_SHARING_GROUP


def _resources_by_group(
    order: list[Transformation], nodes: dict[int, StreamNode]
) -> dict[str, ResourceProfile]:
    """The demands of each slot sharing group; all operators that state demands for a group must
    state the same."""
    demands: dict[str, tuple[ResourceProfile, StreamNode]] = {}
    for transformation in order:
        if transformation.resources == ANY or transformation.id not in nodes:
            continue
        node = nodes[transformation.id]
        known, first = demands.setdefault(node.slot_sharing_group, (transformation.resources, node))
        if known != transformation.resources:
            raise ProgramError(
                f"{first.label} and {node.label} demand different resources for the slot "
                f"sharing group {node.slot_sharing_group!r} "
                f"({known} and {transformation.resources}); give one of "
                "them another slot_sharing_group"
            )
    return {group: profile for group, (profile, _) in demands.items()}


def _check_loops(order: Iterable[Transformation], mode: RuntimeMode) -> None:
    """Raises ProgramError for a loop that is not closed, and for a loop in BATCH, where its body
    would wait for the end of its head's output (Flink refuses it too)."""
    for each in order:
        if isinstance(each, IterationHeadTransformation):
            begun = f"the loop begun by iterate() at {each.where}"
            if each.tail is None:
                raise ProgramError(
                    f"{begun} has no way back: call close_with(feedback) on the stream "
                    "iterate() gave"
                )
            if mode is RuntimeMode.BATCH:
                raise ProgramError(
                    f"{begun} cannot run in runtime mode BATCH: use RuntimeExecutionMode.STREAMING"
                )


def _refuse_duplicate_uids(nodes: Iterable[StreamNode]) -> None:
    seen: dict[tuple[str, str], StreamNode] = {}
    for node in nodes:
        for kind, value in (("uid", node.uid), ("uid hash", node.uid_hash)):
            if value is None:
                continue
            other = seen.setdefault((kind, value), node)
            if other is not node:
                raise ProgramError(
                    f"{other.label} and {node.label} both have the {kind} {value!r}; give "
                    "each operator its own"
                )


def _refuse_shared_property(nodes: Iterable[StreamNode]) -> None:
    """Some sinks write with something that must be theirs alone, such as the names of their
    transactions."""
    seen: dict[str, StreamNode] = {}
    for node in nodes:
        owned = getattr(node.operator, "owned", None)
        other = seen.setdefault(owned, node) if owned is not None else node
        if other is not node:
            raise ProgramError(
                f"{other.label} and {node.label} both write with {owned}; give each sink its "
                "own, or write the union of their streams"
            )
