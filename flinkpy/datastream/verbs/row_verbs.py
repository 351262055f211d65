"""Methods on rows: a function is called with each record. On a keyed stream a function object may
keep state per key."""

from __future__ import annotations

from flinkpy.common.typeinfo import (
    PickledBytesTypeInfo,
    RowTypeInfo,
    TupleTypeInfo,
    TypeInformation,
    Types,
)
from flinkpy.datastream import functions as f
from flinkpy.datastream.checks import check_function, check_process_function, check_type, refuse
from flinkpy.datastream.streams.recorded import RecordedStream, RowStream
from flinkpy.datastream.verbs.typed_functions import declared, typed
from flinkpy.graph.partitioning import KeySpec
from flinkpy.operators.process.process_operators import KeyedProcessOperator, ProcessOperator
from flinkpy.operators.rows.keyed_stages import (
    KeyedFilterOperator,
    KeyedFlatMapOperator,
    KeyedMapOperator,
)
from flinkpy.operators.rows.stateless import (
    FilterOperator,
    FlatMapOperator,
    MapOperator,
    ProjectOperator,
)


def map_records(
    stream: RecordedStream, func: object, output_type: TypeInformation | None
) -> RowStream:
    """Implements ``map``."""
    check_function(func, f.MapFunction, "map", 1, "map()")
    output_type = check_type(output_type, "map()")
    key, function = _key_for_state(stream, func), typed(func, f.MapFunction, output_type)
    return stream.as_rows().apply(
        "Map",
        MapOperator(function) if key is None else KeyedMapOperator(function, key),
        output_type,
        key,
    )


def flat_map_records(
    stream: RecordedStream, func: object, output_type: TypeInformation | None
) -> RowStream:
    """Implements ``flat_map``."""
    check_function(func, f.FlatMapFunction, "flat_map", 1, "flat_map()")
    output_type = check_type(output_type, "flat_map()")
    key, function = _key_for_state(stream, func), typed(func, f.FlatMapFunction, output_type)
    return stream.as_rows().apply(
        "FlatMap",
        FlatMapOperator(function) if key is None else KeyedFlatMapOperator(function, key),
        output_type,
        key,
    )


def filter_records(stream: RecordedStream, func: object) -> RowStream:
    """Implements ``filter`` with a function."""
    if isinstance(func, str):
        raise refuse(
            f"filter() takes a function or an expression, not text, this is {func!r:.80}: "
            'write filter(col("x") > 5), with '
            "col of flinkpy.table.expressions"
        )
    check_function(func, f.FilterFunction, "filter", 1, "filter()")
    rows, key = stream.as_rows(), _key_for_state(stream, func)
    return rows.apply(
        "Filter",
        FilterOperator(func) if key is None else KeyedFilterOperator(func, key),
        rows.output_type,
        key,
    )


def _key_for_state(stream: RecordedStream, function: object) -> KeySpec | None:
    """The key, if the function may keep state, which a plain function cannot."""
    return stream.key if isinstance(function, f.Function) else None


def project_fields(stream: RecordedStream, field_indexes: tuple[int, ...]) -> RowStream:
    """Implements ``project``."""
    if not field_indexes or any(
        isinstance(at, bool) or not isinstance(at, int) or at < 0 for at in field_indexes
    ):
        raise refuse(f"project() takes field positions from 0 on, these are {field_indexes}")
    rows = stream.as_rows()
    types, output_type = rows.output_type, None
    if isinstance(types, (TupleTypeInfo, RowTypeInfo)):
        if max(field_indexes) >= len(types.field_types):
            raise refuse(
                f"project({max(field_indexes)}): the records have {len(types.field_types)} "
                "fields, counted from 0"
            )
        output_type = Types.TUPLE([types.field_types[at] for at in field_indexes])
    elif types is not None and not isinstance(types, PickledBytesTypeInfo):
        raise refuse(f"project() needs tuples or rows, this is a stream of {types!r}")
    return rows.apply("Projection", ProjectOperator(field_indexes), output_type)


def process_records(
    stream: RecordedStream, func: object, output_type: TypeInformation | None
) -> RowStream:
    """Implements ``process`` with a ProcessFunction."""
    if isinstance(func, f.KeyedProcessFunction):
        raise refuse(
            f"process(): {type(func).__name__} is a KeyedProcessFunction, and this stream has "
            "no keys: call key_by(...) before, or make "
            "it a ProcessFunction"
        )
    check_process_function(func, f.ProcessFunction)
    output_type = check_type(output_type, "process()")
    return stream.as_rows().apply(
        "Process", declared(ProcessOperator(func), output_type), output_type
    )


def process_keyed(
    stream: RecordedStream, key: KeySpec, func: object, output_type: TypeInformation | None
) -> RowStream:
    """Implements ``process`` with a KeyedProcessFunction."""
    if isinstance(func, f.ProcessFunction):
        raise refuse(
            f"process() on a KeyedStream takes a KeyedProcessFunction; {type(func).__name__} "
            "is a ProcessFunction"
        )
    check_process_function(func, f.KeyedProcessFunction)
    output_type = check_type(output_type, "process()")
    return stream.as_rows().apply(
        "KeyedProcess", declared(KeyedProcessOperator(func, key), output_type), output_type, key
    )
