"""Checks the arguments of the API's methods.

A mistake is refused while the program is built, by a ProgramError with the file and line of the
call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flinkpy.common.typeinfo import TypeInformation
from flinkpy.common.watermark_strategy import TimestampAssigner, WatermarkStrategy
from flinkpy.core.program.program_line import caller as caller
from flinkpy.core.program.program_line import located as located
from flinkpy.core.program.program_line import refuse as refuse
from flinkpy.operators.functions import Function

_INSTEAD = {  # what other systems call something, and what to write here
    "where": (
        "filter(...) keeps the records that are wanted; where(...) belongs behind join(...) "
        "and co_group(...)"
    ),
    **dict.fromkeys(("group_by", "groupby", "groupBy"), "write key_by(...)"),
    **dict.fromkeys(
        ("sort", "sort_by", "order_by", "sort_values"),
        "it has no end at which its order is known; sort what you collect, "
        "such as sorted(stream.execute_and_collect())",
    ),
    **dict.fromkeys(("agg",), "write aggregate(...)"),
    **dict.fromkeys(("head", "first", "top"), "write take(n) for a list, limit(n) for a stream"),
    **dict.fromkeys(
        ("collect", "to_list"), "write execute_and_collect(), or take(n) for the first records"
    ),
    **dict.fromkeys(("drop_duplicates", "unique"), "write distinct(...)"),
    "withColumn": "write with_column(...)",
    "toPandas": "write to_pandas()",
    **dict.fromkeys(("toDF", "withColumnRenamed"), "write rename({old: new})"),
    **dict.fromkeys(
        ("apply", "foreach", "for_each"),
        "write map(...), flat_map(...) or process(...), or sink_to(...) for what goes out",
    ),
    **dict.fromkeys(
        ("write_text", "write_as_text"),
        ("write sink_to(FileSink.for_row_format(folder, Encoder.simple_string_encoder()).build())"),
    ),
}
_COLUMN = 'write with_column("name", expression)'
_NULLS = (
    'of columns: filter(col("x").is_not_null) drops rows, with_column("x", '
    'col("x").if_null(0)) fills nulls'
)
_INSTEAD |= {  # what users of frames try
    "dtypes": "write schema, which has the names and types of the columns",
    "shape": "write count() and len(columns)",
    **dict.fromkeys(("to_parquet", "toParquet"), "write write_parquet(folder) and env.execute()"),
    "to_csv": "write write_csv(folder) and env.execute()",
    "to_json": "write write_json(folder) and env.execute()",
    "write": "write write_parquet, write_csv, write_json, write_avro or write_text",
    **dict.fromkeys(("add_columns", "add_or_replace_columns"), "write with_columns(...)"),
    **dict.fromkeys(("add_column", "assign", "mutate"), _COLUMN),
    **dict.fromkeys(("drop_columns", "dropColumns"), "write drop(...)"),
    "rename_columns": "write rename({old: new})",
    **dict.fromkeys(("plot", "hist"), "draw what you collect: to_pandas().plot()"),
    "iloc": "write take(n), or to_pandas()",
    "loc": "write filter(...)",
    "query": 'write filter(col("x") > 5)',
    "astype": 'write with_column("x", col("x").cast(Types.LONG()))',
    "values": "write to_arrow() or to_pandas()",
    **dict.fromkeys(("reset_index", "set_index"), "it has no index; key_by(...) makes groups"),
    **dict.fromkeys(
        ("explain", "print_plan", "printSchema", "print_schema"),
        "print(env.get_execution_plan()) shows the plan, schema the columns",
    ),
    "info": "write describe(), or schema",
    **dict.fromkeys(("dropna", "drop_nulls", "fillna", "fill_null", "isna", "isnull"), _NULLS),
    **dict.fromkeys(("sample",), "write filter(lambda record: random.random() < 0.01)"),
    **dict.fromkeys(
        ("tail", "last"),
        (
            "it has no end that is known before; take what you need of to_pandas(), or limit(n) "
            "for the first records"
        ),
    ),
    **dict.fromkeys(
        ("merge", "lookup", "join_broadcast"),
        ("write join_table(frame, on=...) for a static table, join(...) for a stream in windows"),
    ),
    **dict.fromkeys(
        ("apply_async", "map_async"), "write AsyncDataStream.unordered_wait(stream, ...)"
    ),
    "nunique": 'write distinct("x").count()',
    **dict.fromkeys(
        ("std", "stddev", "median", "quantile", "var"),
        ('write aggregate(...), such as col("x").median.alias("middle"), or describe()'),
    ),
    **dict.fromkeys(
        ("to_dict", "to_dicts", "to_pylist", "to_numpy"), "write to_arrow().to_pylist(), or take(n)"
    ),
    **dict.fromkeys(
        ("pivot", "melt", "corr"), "do that with what you collect, such as to_pandas()"
    ),
    "persist": "write cache()",
}
_BY_RESULT = "write key_by(...) and reduce(...), or aggregate(...) over columns"
_WINDOWS = "write key_by(...).window(...), or window_all(...) for the whole stream"
_SINK = "write sink_to(...) with a sink of flinkpy.connectors.sinks"
_SEEN = "write map(...) with a function that shows its record and returns it, or print()"
_OVER = "write it as SQL, OVER (PARTITION BY ...), or keep state in a KeyedProcessFunction"
_TABLE = "write StreamTableEnvironment.create(env).from_data_stream(stream)"
_ONE_BY_ONE = "write execute_and_collect(), which gives the records one by one"
_RENAMED = "here its name is "
_INSTEAD |= {  # what users of Spark, Beam, Bytewax and Java's Flink try
    **dict.fromkeys(
        ("keyBy", "key_on", "keyed", "groupByKey", "group_by_key"), "write key_by(...)"
    ),
    **dict.fromkeys(("partitionBy", "partition_by"), "write key_by(...), or partition_custom(...)"),
    **dict.fromkeys(("repartition", "coalesce"), "write rebalance() and set_parallelism(n)"),
    **dict.fromkeys(("reduceByKey", "reduce_by_key", "fold", "scan", "accumulate"), _BY_RESULT),
    **dict.fromkeys(
        ("aggregateByKey", "aggregate_by_key", "fold_final", "reduce_final"), _BY_RESULT
    ),
    **dict.fromkeys(
        ("countByKey", "count_by_key", "count_final"),
        'write key_by(...).aggregate(lit(1).count.alias("n"))',
    ),
    **dict.fromkeys(("countByValue", "count_by_value", "counts"), "write value_counts(column)"),
    **dict.fromkeys(("avg", "average"), "write mean(column), or aggregate(...) of each key"),
    **dict.fromkeys(
        ("timeWindow", "time_window", "countWindow", "windowAll", "fold_window", "reduce_window"),
        _WINDOWS,
    ),
    **dict.fromkeys(
        ("collect_window", "rolling", "resample", "groupby_dynamic", "count_window_by"), _WINDOWS
    ),
    **dict.fromkeys(("addSink", "sinkTo", "sink", "output", "write_to", "to_kafka"), _SINK),
    **dict.fromkeys(("writeStream", "write_stream", "save", "insert_into", "to_sql"), _SINK),
    **dict.fromkeys(("inspect", "peek", "tap", "debug", "log"), _SEEN),
    **dict.fromkeys(("foreachBatch", "foreach_batch"), "write map_batches(...), or a sink"),
    **dict.fromkeys(
        ("mapPartitions", "map_partitions"), "write full_window_partition(), or map_batches(...)"
    ),
    **dict.fromkeys(
        ("mapInPandas", "mapInArrow", "map_in_pandas", "pipe", "transform", "applymap"),
        'write map_batches(function), with batch_format="pandas" for frames',
    ),
    **dict.fromkeys(
        ("map_values", "mapValues", "map_value"), "write map(...), which gets the whole record"
    ),
    **dict.fromkeys(
        ("flatMap", "flatmap", "explode", "filter_map", "flat_map_values"),
        "write flat_map(...), whose function gives a list or yields",
    ),
    **dict.fromkeys(("stateful_map", "statefulMap"), "write key_by(...).process(...) with state"),
    "withColumns": "write with_columns(...)",
    **dict.fromkeys(
        ("toList", "collect_as_list", "executeAndCollect"), "write execute_and_collect()"
    ),
    **dict.fromkeys(("iterrows", "itertuples", "iter_rows", "iter_batches"), _ONE_BY_ONE),
    **dict.fromkeys(("execute", "run", "start"), "write env.execute(), or execute_and_collect()"),
    **dict.fromkeys(("dropDuplicates", "dedup", "dedupe"), "write distinct(...)"),
    **dict.fromkeys(
        ("unionAll", "union_all", "concat", "append", "merge_streams"), "write union(...)"
    ),
    **dict.fromkeys(
        ("left_join", "inner_join", "outer_join", "crossJoin", "cross_join"),
        "write join(...) in windows, interval_join(...) of keyed streams, or join_table(...)",
    ),
    **dict.fromkeys(("cogroup", "coGroup"), _RENAMED + "co_group(...)"),
    **dict.fromkeys(
        ("withWatermark", "with_watermark", "assign_timestamps", "assignTimestampsAndWatermarks"),
        "write assign_timestamps_and_watermarks(...)",
    ),
    **dict.fromkeys(
        ("with_timestamps", "timestamp"), "write assign_timestamps_and_watermarks(...)"
    ),
    **dict.fromkeys(("cumsum", "cumcount", "shift", "diff", "lag", "lead", "rank"), _OVER),
    **dict.fromkeys(("nlargest", "nsmallest", "top_k"), "write it as SQL, ORDER BY ... LIMIT n"),
    **dict.fromkeys(
        ("to_table", "as_table", "create_temp_view", "registerTempTable", "sql"), _TABLE
    ),
    "createOrReplaceTempView": _TABLE,
    **dict.fromkeys(("to_df", "to_dataframe", "to_frame"), "write to_pandas()"),
    **dict.fromkeys(("len", "size"), "write count()"),
    "having": "write filter(...) behind aggregate(...)",
    **dict.fromkeys(
        ("branch", "split"), "write filter(...) twice, or process(...) with an OutputTag"
    ),
    **dict.fromkeys(("getSideOutput", "side_output"), _RENAMED + "get_side_output(tag)"),
    **dict.fromkeys(("buffer", "batch", "chunk"), "write count_window_all(n), or map_batches(...)"),
    "setParallelism": _RENAMED + "set_parallelism(n)",
    "startNewChain": _RENAMED + "start_new_chain()",
    "disableChaining": _RENAMED + "disable_chaining()",
    **dict.fromkeys(
        ("zip_with_index", "enumerate", "with_index"),
        "records have no numbers; key them by a field",
    ),
}
_GIVE_ONE_VALUE = frozenset({"map", "filter", "reduce", "get_key", "partition", "invoke"})


def check_type(type_info: object, call: str) -> TypeInformation | None:
    """The declared type, or None; refuses anything else."""
    if type_info is None or isinstance(type_info, TypeInformation):
        return type_info
    hint = (
        f"call it: {type_info.__qualname__}()"
        if hasattr(type_info, "__qualname__")
        else "use one of Types, such as Types.STRING()"
    )
    raise refuse(f"{call}: the output type {type_info!r:.80} is no type; {hint}")


def check_strategy(strategy: object, call: str) -> WatermarkStrategy:
    """The watermark strategy; refuses one that cannot be used in this call."""
    if not isinstance(strategy, WatermarkStrategy):
        raise refuse(f"{call} takes a WatermarkStrategy, this is {strategy!r:.80}")
    if strategy.alignment is not None and call != "from_source()":
        raise refuse(
            f"{call}: only sources can be aligned, as only they can stop reading; give the "
            "strategy to env.from_source(...)"
        )
    _check_assigner(strategy.timestamp_assigner, call)
    return strategy


def _check_assigner(assigner: object, call: str) -> None:
    """Refuses an assigner that takes neither the record, nor the record and its previous
    timestamp."""
    import inspect

    if not callable(assigner) or isinstance(assigner, TimestampAssigner):
        return
    try:
        signature = inspect.signature(assigner)
    except (ValueError, TypeError):
        return  # written in C, without a signature
    for arguments in ([None], [None, None]):
        try:
            signature.bind(*arguments)
            return
        except TypeError:
            continue
    raise refuse(
        f"{call}: the timestamp assigner is called with the record, or the record and its "
        "timestamp so far; "
        f"{getattr(assigner, '__name__', type(assigner).__name__)}{signature} "
        "takes neither"
    )


def check_function(
    function: object, kind: type[Function], method: str, arguments: int, call: str
) -> None:
    """Refuses a function that cannot be called as ``method`` with this many arguments."""
    # other classes are called like any function: map(str)
    if isinstance(function, type) and issubclass(function, Function):
        raise refuse(f"{call} takes a function object, not a class: write {function.__name__}()")
    found = getattr(function, method, None)
    if isinstance(function, Function):
        if found is None:
            raise refuse(
                f"{call} takes a {kind.__name__}, a {type(function).__name__} has no {method}()"
            )
    elif callable(function):
        found = function
    if not callable(found):
        raise refuse(
            f"{call} takes a function, a lambda or a {kind.__name__}; {function!r:.80} is a "
            f"{type(function).__name__}"
        )
    check_arity(found, arguments, call)
    _check_returns(found, method, call)


def _check_returns(function: Callable[..., Any], method: str, call: str) -> None:
    """Refuses a coroutine or a generator function if a value is wanted. Its body would never run,
    and as the result of a filter it would always count as true."""
    import inspect

    name = getattr(function, "__name__", type(function).__name__)
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise refuse(
            f"{call}: {name} is declared with 'async def', and nothing here would await it; "
            "AsyncDataStream.unordered_wait(...) does"
        )
    if method in _GIVE_ONE_VALUE and inspect.isgeneratorfunction(function):
        raise refuse(
            f"{call} takes one value from its function, {name} is a generator: return instead "
            "of yield, or call flat_map() or process()"
        )


def check_process_function(function: object, kind: type[Function]) -> None:
    """Refuses an object without ``process_element(value, ctx)``, such as a plain function."""
    if (
        not isinstance(function, type)
        and callable(function)
        and not hasattr(function, "process_element")
    ):
        raise refuse(
            f"process() takes a {kind.__name__} object, {function!r:.80} is a plain function: "
            "write a class with "
            "process_element(self, value, ctx), or call map(...) or "
            "flat_map(...) with the function"
        )
    check_function(function, kind, "process_element", 2, "process()")


def no_such_method(stream: object, name: str, keyed: type) -> AttributeError:
    """The error for a method that the stream does not have; if a ``keyed`` stream has it, the
    message suggests ``key_by``."""
    message = f"{type(stream).__name__!r} object has no attribute {name!r}"
    if not name.startswith("_") and hasattr(keyed, name):
        whole = (
            f"; {name}_all(...) takes the whole stream"
            if hasattr(type(stream), f"{name}_all")
            else ""
        )
        message = f"{name}() works on the records of a key: call key_by(...) before{whole}"
    elif name in _INSTEAD:
        message = f"a stream has no {name}(): {_INSTEAD[name]}"
    return AttributeError(message, name=name, obj=stream)


def no_frame(key: object) -> TypeError:
    """The error for ``stream[key]``."""
    if isinstance(key, str):
        return TypeError(
            f"a stream is no frame: select({key!r}) gives that column, and col({key!r}) names "
            "it in an expression"
        )
    if isinstance(key, (int, slice)):
        return TypeError(
            "a stream has no positions: take(n) gives the first records, limit(n) a stream of "
            "them, and "
            "execute_and_collect() all, one after the other"
        )
    return TypeError(
        'a stream is no frame: filter(col("x") > 5) keeps records, select(...) columns'
    )


def check_arity(function: Callable[..., Any], arguments: int, call: str) -> None:
    """Refuses a function that cannot take this many positional arguments."""
    import inspect

    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        return  # written in C, without a signature
    try:
        signature.bind(*[None] * arguments)
    except TypeError:
        name = getattr(function, "__name__", type(function).__name__)
        plural = "s" if arguments > 1 else ""
        raise refuse(
            f"{call} calls its function with {arguments} argument{plural}, {name}{signature} "
            "cannot take that"
        ) from None
