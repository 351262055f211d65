"""Windows over columns: built-in aggregates with Arrow kernels.

They work for aligned windows (tumbling and sliding) with their default trigger and without an
evictor. Other windows run on rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flinkpy.aggregates.builtin import OF_FIELDS
from flinkpy.datastream.checks import located, refuse
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream
from flinkpy.datastream.verbs.event_time import event_time_zone
from flinkpy.datastream.verbs.key_verbs import Keyed
from flinkpy.graph.operator_port import ColumnarOperator

if TYPE_CHECKING:
    from flinkpy.windowing.slices.operator import SliceOperator
    from flinkpy.windowing.slices.store import SliceStore
    from flinkpy.windowing.slicing import Slicing
    from flinkpy.windowing.windowing_strategy import WindowingStrategy


def are_aggregates(arguments: tuple[Any, ...]) -> bool:
    """Whether ``aggregate`` was called with expressions."""
    from flinkpy.columns.expression import Expression

    return any(isinstance(each, Expression) for each in arguments)


@dataclass(frozen=True)
class ColumnarWindow:
    """The settings of a window, and the aggregates over columns that are possible with them."""

    stream: RecordedStream
    by_key: Keyed | None
    windows: WindowingStrategy
    shown: str  # how an error names the windows

    def aggregate(self, aggregates: tuple[Any, ...]) -> ColumnStream:
        """Outputs, for each window and key, the key's columns, the aggregates, and the window's
        start and end, in the zone of the event time if it has one."""
        from flinkpy.columns.aggregate_plan import plan_aggregates
        from flinkpy.windowing.slices.column_slices import AggregateSlices

        slicing = self._slicing()
        if slicing is None:
            raise refuse(
                "aggregate() over columns works on tumbling and sliding windows with their "
                "default trigger and without an evictor, "
                f"not on {self.shown}"
            )
        columns = self.stream.as_columns("aggregate()")
        keys = self._keys("aggregate()")
        with located():
            plan = plan_aggregates(aggregates, keys, "aggregate()")
            event_time = self.windows.assigner.is_event_time()
            zone = event_time_zone(columns.transformation) if event_time else None
            store = AggregateSlices(keys, plan.calls, zone, plan.results)
            operator = self._by_slices(store, slicing)
        return self._applied(columns, operator, ", ".join(plan.names))

    def count(self) -> ColumnStream | None:
        """The number of records in each window, as a column ``count`` beside the key's; None if
        that has to run on rows."""
        if self._columns() is None:
            return None
        from flinkpy.columns.expression_functions import lit

        return self.aggregate((lit(1).count.alias("count"),))

    def field(self, kind: str, position: Any) -> ColumnStream | None:
        """``sum``, ``min`` or ``max`` of a column; None if that has to run on rows."""
        columns, slicing = self._columns(), self._slicing()
        if columns is None or slicing is None or kind not in OF_FIELDS:
            return None
        from flinkpy.windowing.slices.column_slices import FieldSlices

        with located():
            store = FieldSlices(self._keys(f"{kind}()"), kind, position)
            operator = self._by_slices(store, slicing)
        return self._applied(columns, operator, kind)

    def _columns(self) -> ColumnStream | None:
        """The stream, if it is columnar and its windows can be aggregated as columns."""
        if not isinstance(self.stream, ColumnStream) or (
            self.by_key is not None and self.by_key.key.columns is None
        ):
            return None
        return None if self._slicing() is None else self.stream

    def _slicing(self) -> Slicing | None:
        from flinkpy.windowing.general.loops.aligned_loop import default_slicing

        if self.windows.evictor is not None:
            return None
        return default_slicing(self.windows.assigner, self.windows.effective_trigger)

    def _by_slices(self, store: SliceStore, slicing: Slicing) -> SliceOperator:
        from flinkpy.windowing.slices.operator import SliceOperator

        windows = self.windows
        return SliceOperator(
            store,
            slicing,
            windows.assigner.is_event_time(),
            windows.allowed_lateness,
            windows.late_tag,
        )

    def _keys(self, call: str) -> tuple[str, ...]:
        return () if self.by_key is None else self.by_key.columns(call)

    def _applied(
        self, columns: ColumnStream, operator: ColumnarOperator, what: str
    ) -> ColumnStream:
        result = columns.apply_columns(
            type(self.windows.assigner).__name__,
            operator,
            key=None if self.by_key is None else self.by_key.key,
        )
        result.transformation.description = f"Window({self.windows.assigner}, {what})"
        if self.by_key is None:
            result.make_non_parallel()
        return result
