"""Spark DataFrames as Arrow blocks in Ray's object store, and blocks as DataFrames; types map both
ways.

From Spark, each partition becomes a block (``flinkpy.spark.hand_over``). Into Spark, each block
becomes one partition, which an executor reads by itself."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import ray

from flinkpy.connectors.memory.block_schema import conformed, nullable
from flinkpy.connectors.ray.object_store import Store, make_keeper
from flinkpy.core.errors import ProgramError, ResourceUnavailableError
from flinkpy.spark.computation import Computation
from flinkpy.spark.hand_over import HandOver

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The schema that also says which columns are never null; Spark gets that from its own schema
_EXACT = b"flinkpy.schema"
DECIMAL_DIGITS = 38  # Spark's limit
BATCH_ROWS = 1 << 16  # how many an executor has in memory at a time

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}


def hand_over(frame: DataFrame) -> tuple[str, int, pa.Schema, Callable[[], None]]:
    """Begins to copy the DataFrame's partitions into the store. Returns the keeper of the blocks,
    their number, their schema, and a function to call when nobody needs them any more.

    Raises ProgramError for a type that Arrow does not have, ResourceUnavailableError when Spark or
    Ray is gone."""
    require_on_ray(frame.sparkSession, "from_spark()")
    schema = _arrow_schema(frame)
    computation = Computation(frame)
    keeper = make_keeper()
    store = Store(keeper)
    store.expect_blocks(computation.partitions)
    on_its_way = HandOver(computation, store)
    on_its_way.start()
    return keeper, computation.partitions.count, schema, on_its_way.forget


def require_on_ray(spark: SparkSession, call: str) -> None:
    """Refuses a session that was stopped, or that does not run on Ray, and a session whose Ray is
    gone."""
    if not ray.is_initialized():
        raise ResourceUnavailableError(
            f"{call}: this program's connection to Ray has ended, and Spark with it: begin "
            "again with stop_spark() and "
            "spark_session()"
        )
    if spark.sparkContext._jsc is None:
        raise ProgramError(
            f"{call}: this Spark session has been stopped: make a new one with "
            "flinkpy.spark.spark_session()"
        )
    master = spark.sparkContext.master
    if not master.startswith("ray://"):
        raise ProgramError(
            f"{call}: this Spark session runs on {master}, not on Ray, so Ray cannot reach "
            "its data: make it with "
            "flinkpy.spark.spark_session()"
        )


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    kinds = _kinds(frame)
    names = [name for name, _ in kinds]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ProgramError(
            f"the DataFrame has several columns named {', '.join(map(repr, twice))}: rename "
            "or drop the others, as after a join"
        )
    return pa.schema(
        [_arrow_field(frame.sparkSession, name, described) for name, described in kinds]
    )


def _kinds(frame: DataFrame) -> list[tuple[str, dict[str, Any]]]:
    """Returns name and JSON description of each column, from Spark itself: PySpark does not know
    all of its types."""
    return [(field["name"], field) for field in json.loads(frame._jdf.schema().json())["fields"]]


def _arrow_field(spark: SparkSession, name: str, described: dict[str, Any]) -> pa.Field:
    from pyspark.sql.pandas.types import to_arrow_type
    from pyspark.sql.types import StructField, UserDefinedType

    try:
        field = StructField.fromJson(described)
        if '"udt"' in json.dumps(described["type"]) or isinstance(field.dataType, UserDefinedType):
            raise TypeError("what it is made of would come back, not the type")
        return pa.field(name, to_arrow_type(field.dataType), field.nullable)
    except Exception as error:
        kind = spark._jvm.org.apache.spark.sql.types.DataType.fromJson(
            json.dumps(described["type"])
        ).simpleString()
        raise ProgramError(
            f"column {name!r} of the DataFrame is {kind}, which cannot be handed over: leave "
            "it out, or cast it, for example "
            f".withColumn({name!r}, col({name!r}).cast('string'))"
        ) from error


def stream_bytes(table: pa.Table) -> bytes:
    """Returns a block in the form that Spark's executors read: the bytes of an Arrow stream, with
    Spark's own types."""
    # BytesIO returns its bytes without a copy
    exact = spark_schema(table.schema)
    into = io.BytesIO()
    given = conformed(
        table, pa.schema([pa.field(field.name, nullable(field.type)) for field in exact])
    )
    with pa.ipc.new_stream(
        into, given.schema.with_metadata({_EXACT: exact.serialize().to_pybytes()})
    ) as stream:
        stream.write_table(given, max_chunksize=BATCH_ROWS)
    return into.getvalue()


def schema_of(block: object) -> pa.Schema:
    """Returns the schema that ``stream_bytes`` was given, in Spark's types."""
    return pa.ipc.read_schema(pa.py_buffer(pa.ipc.open_stream(block).schema.metadata[_EXACT]))


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """Returns the schema in Spark's types. Raises ProgramError for a column without such a type."""
    return pa.schema(
        [
            pa.field(field.name, spark_type(field.type, field.name), field.nullable)
            for field in schema
        ]
    )


def dataframe_of(spark: SparkSession, blocks: list[Any], schema: pa.Schema) -> DataFrame:
    """Returns a DataFrame of these blocks (``stream_bytes``), one partition each. Spark's executors
    read them without Python."""
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    require_on_ray(spark, "to_spark()")
    kinds = StructType([_spark_field(field) for field in spark_schema(schema)])
    if not blocks:
        return spark.createDataFrame([], kinds)
    owner_of = ray.worker.global_worker.core_worker.get_owner_address
    jvm: Any = spark.sparkContext._jvm
    partitions = jvm.org.apache.spark.rdd.RayDatasetRDD(
        spark._jsc, [block.binary() for block in blocks], [owner_of(block) for block in blocks]
    )
    return DataFrame(
        jvm.org.apache.spark.sql.raydp.ObjectStoreReader.RayDatasetToDataFrame(
            spark._jsparkSession, partitions, kinds.json()
        ),
        spark,
    )


def _spark_field(field: pa.Field) -> Any:
    from pyspark.sql.types import StructField

    return StructField(field.name, _spark_data_type(field.type), field.nullable)


def _spark_data_type(kind: pa.DataType) -> Any:
    """Returns Spark's type, including what may be null inside it, which PySpark's own mapping
    drops."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, MapType, StructType

    if pa.types.is_struct(kind):
        return StructType([_spark_field(field) for field in kind])
    if pa.types.is_list(kind):
        return ArrayType(_spark_data_type(kind.value_type), kind.value_field.nullable)
    if pa.types.is_map(kind):
        return MapType(
            _spark_data_type(kind.key_type),
            _spark_data_type(kind.item_type),
            kind.item_field.nullable,
        )
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def spark_type(kind: pa.DataType, column: str) -> pa.DataType:
    """Returns an Arrow type that Spark reads and that holds every value of ``kind``. Raises
    ProgramError if there is none.

    >>> (
    ...     spark_type(pa.timestamp("ms"), "t"),
    ...     spark_type(pa.dictionary(pa.int32(), pa.large_string()), "s"),
    ... )
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
    if types.is_decimal(kind) and kind.bit_width == 256:
        if kind.precision > DECIMAL_DIGITS:
            raise ProgramError(
                f"column {column!r} is {kind}, and Spark's decimals have {DECIMAL_DIGITS} "
                "digits: cast it before to_spark(), to "
                "Types.DOUBLE() or Types.STRING(), or leave it out"
            )
        return pa.decimal128(kind.precision, kind.scale)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return pa.list_(kind.value_field.with_type(spark_type(kind.value_type, column)))
    if types.is_map(kind):
        return pa.map_(
            spark_type(kind.key_type, column),
            kind.item_field.with_type(spark_type(kind.item_type, column)),
        )
    if types.is_struct(kind):
        return pa.struct([field.with_type(spark_type(field.type, column)) for field in kind])
    return _known(kind, column)


def _known(kind: pa.DataType, column: str) -> pa.DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    try:
        from_arrow_type(kind, prefer_timestamp_ntz=True)
    except Exception as error:
        raise ProgramError(
            f"column {column!r} is {kind}, which Spark has no type for: leave it out, or "
            "convert it before to_spark()"
        ) from error
    return kind
