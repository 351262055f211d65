"""What the graph knows of an operator, and of one in two phases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Protocol, TypeAlias

from flinkpy.common.changelog_mode import ChangelogMode
from flinkpy.core.options.engine import AggregatePhases
from flinkpy.core.options.memory_sizes import MemoryKind
from flinkpy.graph.partitioning import KeySpec

if TYPE_CHECKING:
    import pyarrow as pa


class ChainingStrategy(Enum):
    """Whether an operator may be chained to the one before it, and the next one to it."""

    ALWAYS = "ALWAYS"
    HEAD = "HEAD"  # begins a chain; others may follow
    NEVER = "NEVER"


class Operator(Protocol):
    """An operator as the graph sees it: it carries operators from the program to the tasks, and
    calls none of what they do there. ``flinkpy.operators.base.StreamOperator`` says what each of
    these attributes means, and is what every operator derives from."""

    @property
    def chaining(self) -> ChainingStrategy: ...

    @property
    def takes_changes(self) -> ChangelogMode: ...

    @property
    def emits_changes(self) -> ChangelogMode | None: ...

    @property
    def replaces_results(self) -> bool: ...

    @property
    def keeps_nothing(self) -> bool: ...

    @property
    def takes_last_results(self) -> bool: ...

    @property
    def chains_by_key(self) -> bool: ...

    @property
    def reads_keys(self) -> bool: ...

    @property
    def keeps_timestamps(self) -> bool: ...

    @property
    def memory_weights(self) -> Mapping[MemoryKind, int]: ...


class ColumnarOperator(Operator, Protocol):
    """An operator over the columns of one stream."""

    def output_schema(self, schema: pa.Schema | None, /) -> pa.Schema | None:
        """The schema of its output for that of its input; None if only its batches show it."""


class ColumnarJoin(Operator, Protocol):
    """An operator over the columns of two streams."""

    def output_schema(self, left: pa.Schema, right: pa.Schema, /) -> pa.Schema: ...


@dataclass(frozen=True)
class TwoPhases:
    """An operator in two phases: the tasks that send aggregate what they can before the exchange;
    the rest is done after it. Flink's SQL does the same; here it is used for windows of the
    DataStream API (docs/decisions/two-phase-windows.md), and for operators that see all records in
    one subtask: aggregates without keys, and ``limit``.

    ``local`` runs in the sender's chain and has no state; ``merging`` runs in place of the
    operator, and is of its class, so that it finds its state. ``key`` says where the local results
    have their key; None: they go where the records would."""

    local: Operator
    merging: Operator
    key: KeySpec | None
    # Within a process an exchange passes batches by reference, so saving a record is worth less
    # there.
    pays_within_process: bool
    in_batch: bool = False  # in BATCH too
    # whether the local phase gives what only ``merging`` can read, and not records as they came
    is_partial: bool = True


SplitsOperator: TypeAlias = "Callable[[Operator, AggregatePhases], TwoPhases | None]"


def never_split(operator: Operator, strategy: AggregatePhases) -> TwoPhases | None:
    """Every operator has one phase."""
    return None


@dataclass(frozen=True)
class PhaseRule:
    """``split`` gives the two phases of an operator under a strategy, None where it has one.
    ``strategy`` is that of the program; ``kept``, by a transformation's id, those that a checkpoint
    asks for: what it has in flight before an operator are the records of one phase, or the partial
    results of two, and only the same can read it."""

    split: SplitsOperator = never_split
    strategy: AggregatePhases = AggregatePhases.AUTO
    kept: Mapping[int, AggregatePhases] = field(default_factory=dict)

    def strategy_of(self, transformation_id: int) -> AggregatePhases:
        """That of one operator."""
        return self.kept.get(transformation_id, self.strategy)

    def of(self, operator: Operator, strategy: AggregatePhases) -> TwoPhases | None:
        """The operator's phases, if it has two."""
        return None if strategy is AggregatePhases.ONE_PHASE else self.split(operator, strategy)


ONE_PHASE = PhaseRule()
