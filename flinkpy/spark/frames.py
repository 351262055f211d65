"""Spark DataFrames as Arrow blocks in Ray's object store, and blocks as DataFrames; types map both ways.

Out of Spark RayDP's recoverable way is used: Spark keeps the partitions as Arrow bytes, and a Ray task fetches each into the object store, so that a
block that is lost with its node is fetched, or computed, again. Into Spark each block is one partition, read where Spark's executor runs.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray

from flinkpy.connectors.ray_store import NAMESPACE, dataset_blocks
from flinkpy.core.errors import ProgramError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_UNSIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def blocks_of(frame: DataFrame) -> tuple[list[Any], pa.Schema]:
    """The DataFrame's partitions as blocks, computed when this returns, and their schema. ProgramError for a type that Arrow does not have."""
    _require_on_ray(frame.sparkSession, "from_spark()")
    schema = _arrow_schema(frame)
    from raydp.spark.dataset import from_spark_recoverable

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # RayDP uses what Spark has deprecated
        refs = dataset_blocks(from_spark_recoverable(frame))
        if refs:
            ray.wait(refs, num_returns=len(refs), fetch_local=False)  # Spark may be stopped from here on
    return refs, schema


def _require_on_ray(spark: SparkSession, call: str) -> None:
    master = spark.sparkContext.master
    if not master.startswith("ray://"):
        raise ProgramError(f"{call}: this Spark session runs on {master}, not on Ray, so Ray cannot reach its data: make it with "
                           "flinkpy.spark.spark_session()")


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_type

    twice = sorted({name for name in frame.columns if frame.columns.count(name) > 1})
    if twice:
        raise ProgramError(f"the DataFrame has several columns named {', '.join(map(repr, twice))}: rename or drop the others, as after a join")
    fields = []
    for field in frame.schema.fields:
        try:
            fields.append(pa.field(field.name, to_arrow_type(field.dataType), field.nullable))
        except Exception as error:
            raise ProgramError(f"column {field.name!r} of the DataFrame is {field.dataType.simpleString()}, which cannot be handed over: leave it "
                               f"out, or cast it, for example .withColumn({field.name!r}, col({field.name!r}).cast('string'))") from error
    return pa.schema(fields)


def dataframe_of(spark: SparkSession, keeper: str, blocks: list[Any], schema: pa.Schema) -> DataFrame:
    """A DataFrame of the blocks a sink wrote (``blocks``, kept by ``keeper``), one partition each."""
    from pyspark.sql.pandas.types import from_arrow_schema

    _require_on_ray(spark, "to_spark()")
    wanted = pa.schema([pa.field(field.name, spark_type(field.type, field.name), field.nullable) for field in schema])
    fetch = _Fetch(keeper, wanted, ray.get_runtime_context().gcs_address)
    numbers = spark.range(0, len(blocks), 1, max(1, len(blocks)))
    return numbers.mapInArrow(fetch, from_arrow_schema(wanted, prefer_timestamp_ntz=True))


class _Fetch:
    """In Spark's Python workers: block numbers to the blocks' batches."""

    def __init__(self, keeper: str, schema: pa.Schema, ray_address: str) -> None:
        self._keeper, self._schema, self._ray_address = keeper, schema, ray_address

    def __call__(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not ray.is_initialized():
            ray.init(address=self._ray_address, namespace=NAMESPACE, logging_level="error", log_to_driver=False)
        keeper = ray.get_actor(self._keeper, namespace=NAMESPACE)
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                table = ray.get(ray.get(keeper.committed_block.remote(number))[0])
                yield from table.cast(self._schema).to_batches()


def spark_type(kind: pa.DataType, column: str) -> pa.DataType:
    """The Arrow type Spark takes for this one, which holds every value of it. ProgramError for what Spark has nothing for.

    >>> spark_type(pa.timestamp("ms"), "t"), spark_type(pa.dictionary(pa.int32(), pa.large_string()), "s")
    (TimestampType(timestamp[us]), DataType(string))
    """
    types = pa.types
    if types.is_dictionary(kind):
        return spark_type(kind.value_type, column)
    if kind in _UNSIGNED:
        return _UNSIGNED[kind]
    if types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz and "UTC")
    if types.is_duration(kind):
        return pa.duration("us")
    if types.is_float16(kind):
        return pa.float32()
    if types.is_large_string(kind):
        return pa.string()
    if types.is_large_binary(kind) or types.is_fixed_size_binary(kind):
        return pa.binary()
    if types.is_date64(kind):
        return pa.date32()
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(spark_type(kind.value_type, column)))
    if types.is_map(kind):
        return pa.map_(spark_type(kind.key_type, column), spark_type(kind.item_type, column))
    if types.is_struct(kind):
        return pa.struct([field.with_type(spark_type(field.type, column)) for field in kind])
    return _known(kind, column)


def _known(kind: pa.DataType, column: str) -> pa.DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        from_arrow_type(kind, prefer_timestamp_ntz=True)
    except Exception as error:
        raise ProgramError(f"column {column!r} is {kind}, which Spark has no type for: leave it out, or convert it before to_spark()") from error
    return kind
