"""From a physical plan to streams of columns: each node becomes the transformation of an operator
of ``flinkpy.relational``, each exchange a partitioning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from flinkpy.columns.sql.arrays_of_values import array_of_values
from flinkpy.columns.sql.calc_program import CalcProgram
from flinkpy.common.logical_types.logical_type import MultisetType, RowType
from flinkpy.core.clock import SYSTEM_CLOCK, StoppedClock
from flinkpy.core.options.engine import RUNTIME_MODE, RuntimeMode
from flinkpy.core.options.schema import read
from flinkpy.datastream import DataStream
from flinkpy.datastream.streams.recorded import ColumnStream, apply_two_columns, copy_place
from flinkpy.graph.operator_port import ColumnarJoin, ColumnarOperator
from flinkpy.graph.partitioning import BROADCAST, GLOBAL, KeySpec, Partitioning, PartitioningKind
from flinkpy.graph.transformations import PartitionTransformation, UnionTransformation
from flinkpy.relational.aggregates.aggregate_code import AggregateCode, with_code
from flinkpy.relational.aggregates.hash_aggregate import HashAggregateOperator, partial_schema
from flinkpy.relational.functions.table_function_rows import TableCode, TableFunctionOperator
from flinkpy.relational.in_time.first_rows import FirstRowsOperator
from flinkpy.relational.in_time.over_in_time import OverInTimeOperator
from flinkpy.relational.in_time.temporal_sort import TemporalSortOperator
from flinkpy.relational.joins.hash_join import HashJoinOperator
from flinkpy.relational.joins.interval_rows_join import IntervalRowsJoinOperator
from flinkpy.relational.joins.join_of_tables import JoinSpec
from flinkpy.relational.ordering.over_aggregate import OverAggregateOperator
from flinkpy.relational.ordering.rank_rows import RankOperator, RankSpec
from flinkpy.relational.ordering.sort_rows import SortOperator
from flinkpy.relational.relational_operator import BlockingOperator
from flinkpy.relational.row_by_row.calc_operator import CalcOperator, ExpandOperator
from flinkpy.relational.row_by_row.limit_rows import LimitRowsOperator
from flinkpy.relational.row_by_row.unnest_rows import UnnestOperator
from flinkpy.relational.windows.held_aggregates import HeldAggregatesOperator
from flinkpy.relational.windows.held_windows import WindowedInput, slicing_for
from flinkpy.relational.windows.joined_windows import JoinedWindowsOperator
from flinkpy.relational.windows.ranked_windows import RankedWindowsOperator
from flinkpy.relational.windows.rows_of_sessions import RowsOfSessionsOperator
from flinkpy.relational.windows.sql_slices import SqlAggregateSlices, are_in_slices
from flinkpy.relational.windows.wall_clock import WallClock
from flinkpy.relational.windows.watermark_rows import WatermarkRowsOperator
from flinkpy.relational.windows.window_rows import WindowRowsOperator
from flinkpy.sql.functions.function_port import FunctionRegistry
from flinkpy.sql.functions.user_function import UserFunction
from flinkpy.sql.physical.physical_nodes import (
    AppendJoin,
    Calc,
    CollectNode,
    Correlate,
    Deduplicate,
    Exchange,
    Expand,
    GroupAggregate,
    HashAggregate,
    HashJoin,
    IntervalJoin,
    Limit,
    OneInputNode,
    OverAggregate,
    Phase,
    PhysicalNode,
    Rank,
    RegularJoin,
    SinkNode,
    Sort,
    TableScan,
    TemporalSort,
    UnionAll,
    ValuesNode,
    WatermarkAssigner,
    WindowAggregate,
    WindowJoin,
    WindowRank,
    WindowTableFunction,
)
from flinkpy.sql.rex.relational_terms import SOURCE_WATERMARK, WindowKind, WindowSpec
from flinkpy.sql.rex.rex_nodes import AggregateCall, Rex, RexInput, walk
from flinkpy.sql.rex.rex_programs import program_of
from flinkpy.sql.sql_errors import ValidationError
from flinkpy.table.factories.factory_port import TableFactories
from flinkpy.table.translation.changes.aggregates import group_aggregate
from flinkpy.table.translation.changes.joins import regular_join
from flinkpy.table.translation.changes.ranks import OPERATORS_OF_RANKS
from flinkpy.table.translation.node_schemas import key_by, schema_of
from flinkpy.table.translation.operator_names import operator_name
from flinkpy.table.translation.rows_for_sinks import SinkRules, rows_for_sink
from flinkpy.table.translation.watermarks_in_sources import put_into_source
from flinkpy.windowing.slices.operator import SliceOperator

if TYPE_CHECKING:
    from datetime import timedelta

    from flinkpy.datastream import StreamExecutionEnvironment

_Join: TypeAlias = "HashJoin | WindowJoin | AppendJoin | RegularJoin | IntervalJoin"


def translate(
    plan: PhysicalNode,
    env: StreamExecutionEnvironment,
    factories: TableFactories,
    registry: FunctionRegistry,
    zone: str = "UTC",
    *,
    drops_nulls: bool = False,
) -> DataStream | None:
    """The stream of the plan's rows; None if they go into a table."""
    translator = PlanTranslator(env, factories, registry, zone)
    translator.sinks = SinkRules(drops_nulls=drops_nulls)
    return translator.translated(plan)


class PlanTranslator:
    """Translates the plans of one program. A node that several read becomes one stream.

    With ``gives_uids`` operators have the uids of their nodes, as a compiled plan wants them."""

    def __init__(
        self,
        env: StreamExecutionEnvironment,
        factories: TableFactories,
        registry: FunctionRegistry,
        zone: str = "UTC",
        *,
        gives_uids: bool = False,
    ) -> None:
        self._env = env
        self._factories = factories
        self._registry = registry
        self._zone = zone
        self._gives_uids = gives_uids
        self.sinks = SinkRules()
        self.idle_timeout: timedelta | None = None  # of splits that give no rows
        # all rows of a query in BATCH have the same CURRENT_DATE
        self._is_batch = read(env.program.values, RUNTIME_MODE) is RuntimeMode.BATCH
        self._clock = StoppedClock(SYSTEM_CLOCK.time_ms()) if self._is_batch else SYSTEM_CLOCK
        # by id(node), which is kept so that no other gets its id
        self._streams: dict[int, tuple[PhysicalNode, ColumnStream]] = {}
        self._scans: list[tuple[TableScan, ColumnStream]] = []  # of plans before

    def stream(self, node: PhysicalNode) -> DataStream:
        """The stream of a node's rows, as columns."""
        return DataStream(self._env, self._of(node))

    def translated(self, plan: PhysicalNode) -> DataStream | None:
        """The stream of the plan's rows; None if they go into a table."""
        if isinstance(plan, SinkNode):
            self.write(plan)
            return None
        return self.stream(plan)

    def write(self, node: SinkNode) -> None:
        """Writes the rows of a sink's input into its table. Of several plans that read the same
        columns of a table in STREAMING, it is read once: so another INSERT beside it leaves the
        state of a job where it is. (In BATCH two joins that each read first what the other reads
        last would wait for each other.)"""
        rows = rows_for_sink(self._of(node.input), node, self.sinks, gives_uids=self._gives_uids)
        self._factories.sink(DataStream(self._env, rows), node)
        if not self._is_batch:
            known = self._streams.values()
            self._scans = [(scan, of) for scan, of in known if isinstance(scan, TableScan)]

    def _of(self, node: PhysicalNode) -> ColumnStream:
        found = self._streams.get(id(node))
        if found is None:
            made = _TRANSLATIONS.get(type(node))
            if made is None:
                raise ValidationError(f"{type(node).__name__} cannot run yet")
            found = self._streams[id(node)] = node, made(self, node)
        return found[1]

    # -- where rows come from ----------------------------------------------------------------------

    def _scan(self, node: TableScan) -> ColumnStream:
        for scan, before in self._scans:
            if replace(scan, id=node.id) == node:
                return before
        recorded = self._factories.scan(self._env, node).recorded
        stream = recorded.as_columns(f"the table {node.path}")
        if stream.schema is None:
            stream = replace(stream, schema=schema_of(node.schema))  # the source does not say it
        return stream

    def _values(self, node: ValuesNode) -> ColumnStream:
        import pyarrow as pa

        columns = list(zip(*node.rows)) or [()] * len(node.schema.fields)
        arrays = [array_of_values(list(c), f.type) for c, f in zip(columns, node.schema)]
        table = pa.Table.from_arrays(arrays, schema=schema_of(node.schema))
        stream = self._env.from_arrow(table).recorded.as_columns("VALUES")
        stream.make_non_parallel()  # its rows stay in their order
        return stream

    # -- row by row --------------------------------------------------------------------------------

    def _calc(self, node: Calc) -> ColumnStream:
        names = node.input.schema.names
        program = self._program(node.projections, node.condition, names)
        return self._applied(node, CalcOperator(program, schema_of(node.schema)))

    def _expand(self, node: Expand) -> ColumnStream:
        names = node.input.schema.names
        programs = [self._program(each, None, names) for each in node.projections]
        return self._applied(node, ExpandOperator(programs, schema_of(node.schema)))

    def _correlate(self, node: Correlate) -> ColumnStream:
        operator: ColumnarOperator
        program = self._program(node.arguments, None, node.input.schema.names)
        if node.function == "UNNEST":
            [collection] = node.arguments
            operator = UnnestOperator(
                program,
                schema_of(node.schema),
                is_multiset=isinstance(collection.type, MultisetType),
                keeps_left=node.keeps_left,
                gives_ordinality=bool(dict(node.options).get("WITH ORDINALITY")),
                kept=node.kept,
            )
        else:
            function = self._registry.find(node.function)
            assert isinstance(function, UserFunction), "other table functions are of users"
            operator = TableFunctionOperator(
                program,
                TableCode(function.body, tuple(each.type for each in node.arguments), node.result),
                schema_of(node.schema),
                keeps_left=node.keeps_left,
                kept=node.kept,
            )
        if node.condition is None:
            return self._applied(node, operator)
        if node.keeps_left:
            raise ValidationError(
                "a LEFT JOIN with UNNEST or a table function takes ON TRUE only, as in Flink"
            )
        unnested = self._applied(node, operator)
        columns = [RexInput(f.type, at) for at, f in enumerate(node.schema)]
        calc = self._program(columns, node.condition, node.schema.names)
        stream = unnested.apply_columns("Calc", CalcOperator(calc, schema_of(node.schema)))
        copy_place(unnested.transformation, stream.transformation)
        return stream

    def _union(self, node: UnionAll) -> ColumnStream:
        branches = [self._of(each) for each in node.branches]
        first = branches[0]
        made = UnionTransformation(
            id=first.program.next_id(),
            name="Union",
            union=[each.transformation for each in branches],
        )
        stream = ColumnStream(first.program, made, schema=schema_of(node.schema))
        if {each.transformation.parallelism for each in branches} == {1}:
            stream.make_non_parallel()
        return stream

    def _limit(self, node: Limit) -> ColumnStream:
        schema = schema_of(node.schema)
        return self._applied(node, LimitRowsOperator(node.offset, node.limit, schema))

    def _same(self, node: CollectNode) -> ColumnStream:
        return self._of(node.input)

    # -- how rows meet -----------------------------------------------------------------------------

    def _exchange(self, node: Exchange) -> ColumnStream:
        stream = self._of(node.input)
        if node.is_broadcast:
            partitioning = BROADCAST
        elif node.keys:
            assert stream.schema is not None  # that of a LOCAL aggregate is not its node's
            key = KeySpec(columns=tuple(stream.schema.names[at] for at in node.keys))
            partitioning = Partitioning(PartitioningKind.HASH, key)
        else:
            partitioning = GLOBAL
        made = PartitionTransformation(
            id=stream.program.next_id(),
            name="Exchange",
            input=stream.transformation,
            partitioning=partitioning,
        )
        return ColumnStream(stream.program, made, schema=stream.schema)

    def _calls(self, calls: Sequence[AggregateCall], inputs: RowType) -> tuple[AggregateCall, ...]:
        """The calls, with the functions of the program."""
        found = []
        for call in calls:
            function = self._registry.find(call.function)
            if isinstance(function, UserFunction):
                arguments = [inputs.fields[at].type for at in call.arguments]
                code = cast("AggregateCode", function.body).of_call(arguments, call.type)
                call = with_code(call, code)
            found.append(call)
        return tuple(found)

    def _aggregate(self, node: HashAggregate) -> ColumnStream:
        schema = schema_of(node.schema)
        if node.phase is Phase.GLOBAL:
            local = _local_of(node)
            inputs, calls = schema_of(local.input.schema), local.calls
            keys = local.keys
        else:
            inputs, calls, keys = schema_of(node.input.schema), node.calls, node.keys
        if node.phase is Phase.LOCAL:
            parts = partial_schema(node.keys, node.calls, inputs)
            if parts is None:
                raise ValidationError(f"{operator_name(node)} cannot be computed in two phases")
            schema = parts
        if node.phase is Phase.WHOLE:
            calls = self._calls(calls, node.input.schema)
        return self._applied(node, HashAggregateOperator(keys, calls, node.phase, inputs, schema))

    def _join(self, node: HashJoin) -> ColumnStream:
        is_aware = node.null_aware
        spec = replace(
            self._join_spec(node),
            null_aware=is_aware,
            builds_left=node.builds_left and not is_aware,
        )
        left, right = schema_of(node.left.schema), schema_of(node.right.schema)
        operator = HashJoinOperator(spec, left, right, schema_of(node.schema))
        return self._applied_to_two(node, operator)

    def _regular_join(self, node: RegularJoin | AppendJoin) -> ColumnStream:
        return self._applied_to_two(node, regular_join(node, self._join_spec(node)))

    def _interval_join(self, node: IntervalJoin) -> ColumnStream:
        left, right = schema_of(node.left.schema), schema_of(node.right.schema)
        operator = IntervalRowsJoinOperator(
            self._join_spec(node), node.interval, left, right, schema_of(node.schema)
        )
        return self._applied_to_two(node, operator)

    def _join_spec(self, node: _Join) -> JoinSpec:
        names = (*node.left.schema.names, *node.right.schema.names)
        condition = node.condition
        return JoinSpec(
            node.kind,
            node.left_keys,
            node.right_keys,
            node.null_safe,
            None if condition is None else self._program((), condition, names),
        )

    def _group_aggregate(self, node: GroupAggregate) -> ColumnStream:
        calls = self._calls(node.calls, node.input.schema)
        inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
        operator = group_aggregate(node, calls, inputs, schema)
        return self._applied(node, operator, key_by(node.input.schema, node.keys))

    # -- order -------------------------------------------------------------------------------------

    def _sort(self, node: Sort) -> ColumnStream:
        schema = schema_of(node.schema)
        return self._applied(node, SortOperator(node.keys, schema, node.offset, node.limit))

    def _temporal_sort(self, node: TemporalSort) -> ColumnStream:
        return self._applied(node, TemporalSortOperator(node.keys, schema_of(node.schema)))

    def _first_rows(self, node: Deduplicate) -> ColumnStream:
        operator = FirstRowsOperator(
            schema_of(node.input.schema),
            node.time if node.is_rowtime else None,
            node.keys,
            schema_of(node.schema),
            gives_rank=node.gives_rank,
        )
        return self._applied(node, operator, key_by(node.input.schema, node.keys))

    def _of_changes(self, node: OneInputNode) -> ColumnStream:
        changing = OPERATORS_OF_RANKS[type(node)](node)
        return self._applied(node, changing.operator, key_by(node.input.schema, changing.keys))

    def _rank(self, node: Rank) -> ColumnStream:
        inputs = schema_of(node.input.schema)
        return self._applied(node, RankOperator(_rank_spec(node), inputs, schema_of(node.schema)))

    def _over(self, node: OverAggregate) -> ColumnStream:
        inputs, schema = schema_of(node.input.schema), schema_of(node.schema)
        groups = [
            replace(group, calls=self._calls(group.calls, node.input.schema))
            for group in node.groups
        ]
        if self._is_batch:
            return self._applied(node, OverAggregateOperator(groups, inputs, schema))
        [group] = groups
        operator = OverInTimeOperator(group, inputs, schema, is_rowtime=node.is_rowtime)
        return self._applied(node, operator, key_by(node.input.schema, group.partition))

    # -- windows -----------------------------------------------------------------------------------

    def _watermarks(self, node: WatermarkAssigner) -> ColumnStream:
        if any(getattr(each, "function", "") == SOURCE_WATERMARK for each in walk(node.strategy)):
            return self._of(node.input)
        names = node.input.schema.names
        is_in_source = put_into_source(node, self._of, self._program, self.idle_timeout)
        strategy = None if is_in_source else self._program((node.strategy,), None, names)
        schema = schema_of(node.schema)
        return self._applied(node, WatermarkRowsOperator(node.rowtime, strategy, schema))

    def _window_rows(self, node: WindowTableFunction) -> ColumnStream:
        clock, schema = self._clock_of(node.window), schema_of(node.schema)
        if node.window.kind is not WindowKind.SESSION:
            return self._applied(node, WindowRowsOperator(node.window, schema, clock))
        operator = RowsOfSessionsOperator(_windowed(node.input, node.window), clock, schema)
        return self._applied(node, operator, _key_of(node.input))

    def _window_aggregate(self, node: WindowAggregate) -> ColumnStream:
        inputs, window = schema_of(node.input.schema), node.window
        clock = self._clock_of(window)
        stream = self._of(node.input)
        keys = tuple(inputs.names[at] for at in node.keys)
        calls = self._calls(node.calls, node.input.schema)
        words, schema = node.properties, schema_of(node.schema)
        operator: ColumnarOperator
        if are_in_slices(calls, inputs):
            store = SqlAggregateSlices(keys, calls, window, words, schema, clock, inputs)
            operator = SliceOperator(store, slicing_for(window), not window.is_processing)
        else:
            input = WindowedInput(inputs, window, keys)
            operator = HeldAggregatesOperator(calls, words, input, clock, schema)
        key = KeySpec(columns=keys) if keys else None
        made = stream.apply_columns(operator_name(node), operator, key=key)
        return self._placed(node, made)

    def _window_join(self, node: WindowJoin) -> ColumnStream:
        left, right = node.inputs
        operator = JoinedWindowsOperator(
            self._join_spec(node),
            _windowed(left, node.left_window),
            _windowed(right, node.right_window),
            self._clock_of(node.left_window),
            schema_of(node.schema),
        )
        return self._applied_to_two(node, operator)

    def _window_rank(self, node: WindowRank) -> ColumnStream:
        input, clock = _windowed(node.input, node.window), self._clock_of(node.window)
        operator = RankedWindowsOperator(_rank_spec(node), input, clock, schema_of(node.schema))
        return self._applied(node, operator, _key_of(node.input))

    def _clock_of(self, window: WindowSpec) -> WallClock:
        return WallClock(self._zone if window.is_local and self._zone != "UTC" else None)

    # -- transformations ---------------------------------------------------------------------------

    def _program(
        self, projections: Sequence[Rex], condition: Rex | None, names: Sequence[str]
    ) -> CalcProgram:
        return program_of(
            projections, condition, self._registry, names=names, zone=self._zone, clock=self._clock
        )

    def _applied(
        self, node: OneInputNode, operator: ColumnarOperator, key: KeySpec | None = None
    ) -> ColumnStream:
        input = self._of(node.input)
        if isinstance(operator, BlockingOperator) and not self._is_batch:
            raise ValidationError(
                f"{operator_name(node)} cannot run in STREAMING yet; set 'execution.runtime-mode' "
                "to BATCH if all inputs end"
            )
        stream = input.apply_columns(operator_name(node), operator, key=key)
        return self._placed(node, stream)

    def _applied_to_two(self, node: _Join, operator: ColumnarJoin) -> ColumnStream:
        left, right = (self._of(each) for each in node.inputs)
        keys = map(_key_of, node.inputs) if not isinstance(node, HashJoin) else ()
        stream = apply_two_columns(operator_name(node), operator, left, right, *keys)
        return self._placed(node, stream)

    def _placed(self, node: PhysicalNode, stream: ColumnStream, part: str = "") -> ColumnStream:
        """Says how parallel the operator runs: behind an exchange without keys alone, behind
        another one as the program sets it, and else as its input. ``part`` tells several operators
        of one node apart."""
        if any(isinstance(each, Exchange) and _is_to_one(each) for each in node.inputs):
            stream.make_non_parallel()
        elif not any(isinstance(each, Exchange) for each in node.inputs):
            copy_place(stream.transformation.inputs[0], stream.transformation)
        if self._gives_uids:
            stream.transformation.uid = f"{node.id}_{type(node).__name__}{part}"
        return stream


def _keys_of(input: PhysicalNode) -> tuple[str, ...]:
    """The columns by which rows are distributed."""
    assert isinstance(input, Exchange)
    names = schema_of(input.schema).names
    return tuple(names[at] for at in input.keys)


def _key_of(input: PhysicalNode) -> KeySpec | None:
    keys = _keys_of(input)
    return KeySpec(columns=keys) if keys else None


def _windowed(input: PhysicalNode, window: WindowSpec) -> WindowedInput:
    return WindowedInput(schema_of(input.schema), window, _keys_of(input))


def _rank_spec(node: Rank | WindowRank) -> RankSpec:
    return RankSpec(
        node.function, node.partition, node.keys, node.first, node.last, node.gives_rank
    )


def _is_to_one(exchange: Exchange) -> bool:
    return not exchange.keys and not exchange.is_broadcast


def _local_of(node: HashAggregate) -> HashAggregate:
    """The LOCAL aggregate whose rows a GLOBAL one merges."""
    below: PhysicalNode = node.input
    while isinstance(below, Exchange):
        below = below.input
    if not isinstance(below, HashAggregate) or below.phase is not Phase.LOCAL:
        raise ValidationError("a GLOBAL aggregate stands over a LOCAL one")
    return below


_TRANSLATIONS: dict[type[PhysicalNode], Callable[[PlanTranslator, Any], ColumnStream]] = {
    TableScan: PlanTranslator._scan,
    ValuesNode: PlanTranslator._values,
    Calc: PlanTranslator._calc,
    Expand: PlanTranslator._expand,
    Correlate: PlanTranslator._correlate,
    UnionAll: PlanTranslator._union,
    Limit: PlanTranslator._limit,
    CollectNode: PlanTranslator._same,
    Exchange: PlanTranslator._exchange,
    GroupAggregate: PlanTranslator._group_aggregate,
    HashAggregate: PlanTranslator._aggregate,
    HashJoin: PlanTranslator._join,
    Sort: PlanTranslator._sort,
    Rank: PlanTranslator._rank,
    OverAggregate: PlanTranslator._over,
    TemporalSort: PlanTranslator._temporal_sort,
    Deduplicate: PlanTranslator._first_rows,
    AppendJoin: PlanTranslator._regular_join,
    RegularJoin: PlanTranslator._regular_join,
    IntervalJoin: PlanTranslator._interval_join,
    WatermarkAssigner: PlanTranslator._watermarks,
    WindowTableFunction: PlanTranslator._window_rows,
    WindowAggregate: PlanTranslator._window_aggregate,
    WindowJoin: PlanTranslator._window_join,
    WindowRank: PlanTranslator._window_rank,
    **dict.fromkeys(OPERATORS_OF_RANKS, PlanTranslator._of_changes),
}
