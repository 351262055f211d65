"""Streams as the program records them: streams of rows and streams of columns with a common base
class, and the conversions between them.

Users hold a ``DataStream`` or a related class, which wraps one of these. The API's methods are
implemented as functions from recorded streams to recorded streams, so nothing here knows a class of
the public API."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from flinkpy.common.typeinfo import RowTypeInfo, TypeInformation, Types
from flinkpy.datastream.checks import caller, located, refuse
from flinkpy.datastream.streams.recorded_program import RecordedProgram
from flinkpy.graph.operator_port import ColumnarJoin, ColumnarOperator, Operator
from flinkpy.graph.partitioning import KeySpec
from flinkpy.graph.transformations import (
    OneInputTransformation,
    PartitionTransformation,
    Transformation,
    TwoInputTransformation,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(eq=False)
class RecordedStream(ABC):
    """One output of the recorded program, with the transformation that makes it."""

    program: RecordedProgram
    transformation: Transformation
    # conversions before its operator; they run where it runs
    helpers: tuple[Transformation, ...] = ()
    is_conversion: bool = False  # its operator only converts rows to columns or back
    key: KeySpec | None = None  # of a keyed stream
    before_key: RecordedStream | None = None  # of a keyed stream: the stream before key_by
    is_non_parallel: bool = False  # see make_non_parallel

    is_columnar: ClassVar[bool]

    @abstractmethod
    def routed_by(
        self,
        transformation: Transformation,
        key: KeySpec | None = None,
        before_key: RecordedStream | None = None,
    ) -> RecordedStream:
        """A stream of the same kind and columns, for a transformation that only says where records
        go."""

    @abstractmethod
    def as_rows(self, *, before_edge: bool = False) -> RowStream:
        """This stream as rows, converted if needed. The conversion runs where the consumer runs;
        with ``before_edge``, where the producer runs."""

    @abstractmethod
    def as_columns(self, call: str, *, in_place: bool = False) -> ColumnStream:
        """This stream as columns, converted if needed; with ``in_place``, where the producer runs,
        so that rows which change stay in their order. Refuses rows without a declared type; the
        error names ``call``."""

    @abstractmethod
    def output_schema(self, operator: ColumnarOperator) -> Any:
        """The schema of a columnar operator's output when it reads this stream; None if only its
        batches will show it."""

    @property
    def output_type(self) -> TypeInformation | None:
        """The declared type of the records."""
        declared: TypeInformation | None = self.transformation.output_type
        return declared

    def shown_type(self) -> TypeInformation:
        """The type that ``get_type`` returns; PICKLED_BYTE_ARRAY if none was declared."""
        return Types.PICKLED_BYTE_ARRAY() if self.output_type is None else self.output_type

    def column_names(self) -> list[str] | None:
        """The columns' names, if they are known before the first record."""
        names = getattr(self.output_type, "field_names", None)
        return list(names) if names else None

    def conversions(self) -> tuple[Transformation, ...]:
        """The conversion that makes this stream, if any, for the operator that reads it."""
        return (self.transformation,) if self.is_conversion else ()

    def apply(
        self,
        name: str,
        operator: Operator,
        output_type: TypeInformation | None = None,
        key: KeySpec | None = None,
    ) -> RowStream:
        """Adds an operator that reads this stream and outputs rows."""
        return RowStream(
            self.program, self._add(name, operator, output_type, key), self.conversions()
        )

    def apply_columns(
        self,
        name: str,
        operator: ColumnarOperator,
        output_type: TypeInformation | None = None,
        key: KeySpec | None = None,
    ) -> ColumnStream:
        """Adds an operator that reads this stream and outputs columns."""
        schema = self.output_schema(operator)
        return ColumnStream(
            self.program,
            self._add(name, operator, output_type, key),
            self.conversions(),
            schema=schema,
        )

    def _add(
        self,
        name: str,
        operator: Operator,
        output_type: TypeInformation | None,
        key: KeySpec | None,
    ) -> Transformation:
        transformation = OneInputTransformation(
            id=self.program.next_id(),
            name=name,
            input=self.transformation,
            operator=operator,
            key=key,
            output_type=output_type,
            where=caller(),
        )
        self.program.add(transformation)
        return transformation

    def make_non_parallel(self) -> None:
        """Fixes the parallelism of its operator at 1, whatever the program sets, because the
        operator must see all records."""
        self.is_non_parallel = True
        for transformation in (self.transformation, *self.helpers):
            transformation.parallelism = transformation.max_parallelism = 1

    def refuse_stranger(self, other: RecordedStream, call: str) -> None:
        """Refuses a stream of another environment."""
        if other.program is not self.program:
            raise refuse(
                f"{call}: the streams belong to different environments; make both from one "
                "StreamExecutionEnvironment"
            )


@dataclass(eq=False)
class RowStream(RecordedStream):
    """A stream of Python values."""

    is_columnar = False

    def routed_by(
        self,
        transformation: Transformation,
        key: KeySpec | None = None,
        before_key: RecordedStream | None = None,
    ) -> RowStream:
        return RowStream(self.program, transformation, key=key, before_key=before_key)

    def as_rows(self, *, before_edge: bool = False) -> RowStream:
        return self

    def as_columns(self, call: str, *, in_place: bool = False) -> ColumnStream:
        declared = self.output_type
        if not isinstance(declared, RowTypeInfo):
            instead = (
                "; execute_and_collect() gives the values as they are"
                if call.startswith(("to_arrow", "to_pandas", "to_polars"))
                else ""
            )
            raise refuse(
                f"{call} works on columns, and this stream carries Python values of no "
                "declared row type: declare it where the records are "
                "made, for example map(..., output_type=Types.ROW_NAMED([names], "
                "[types])), or start from a columnar source (from_parquet, "
                f"from_arrow, from_pandas){instead}"
            )
        made = self._to_columns(declared)
        if in_place and not isinstance(self.transformation, PartitionTransformation):
            copy_place(self.transformation, made.transformation)
        return made

    def as_schema(self, schema: pa.Schema | None) -> RecordedStream:
        """This stream as columns of that schema; as it is, if that is not known."""
        return self if schema is None else self._to_columns(schema)

    def _to_columns(self, declared: RowTypeInfo | pa.Schema) -> ColumnStream:
        from flinkpy.operators.columnar.column_operators import RowsToColumnsOperator

        stream = self.apply_columns("Rows to columns", RowsToColumnsOperator(declared))
        stream.is_conversion = True
        return stream

    def output_schema(self, operator: ColumnarOperator) -> Any:
        with located():
            return operator.output_schema(None)


@dataclass(eq=False)
class ColumnStream(RecordedStream):
    """A stream of column batches, of the type pyarrow.RecordBatch."""

    schema: Any = None  # a pyarrow.Schema, if it is known while the program is built

    is_columnar = True

    def routed_by(
        self,
        transformation: Transformation,
        key: KeySpec | None = None,
        before_key: RecordedStream | None = None,
    ) -> ColumnStream:
        return ColumnStream(
            self.program, transformation, key=key, before_key=before_key, schema=self.schema
        )

    def as_rows(self, *, before_edge: bool = False) -> RowStream:
        from flinkpy.operators.columnar.column_operators import ColumnsToRowsOperator

        stream = self.apply("Columns to rows", ColumnsToRowsOperator())
        stream.is_conversion = True
        if before_edge:
            copy_place(self.transformation, stream.transformation)
        return stream

    def as_columns(self, call: str, *, in_place: bool = False) -> ColumnStream:
        return self

    def with_schema(self, schema: pa.Schema | None) -> ColumnStream:
        """This stream with a schema that differs from its own only in what may be null, converted
        where its producer runs if needed."""
        if self.schema is None or self.schema.equals(schema):
            return self
        from flinkpy.operators.columnar.column_operators import NullableColumnsOperator

        stream = self.apply_columns("Nullable columns", NullableColumnsOperator(schema))
        stream.is_conversion = True
        copy_place(self.transformation, stream.transformation)
        return stream

    def output_schema(self, operator: ColumnarOperator) -> Any:
        if self.schema is None:
            return None
        with located():
            return operator.output_schema(self.schema)

    def shown_type(self) -> TypeInformation:
        if self.output_type is None and self.schema is not None:
            from flinkpy.columns.values.arrow_types import row_type_of

            return row_type_of(self.schema)
        return super().shown_type()

    def column_names(self) -> list[str] | None:
        if self.schema is None:
            return super().column_names()
        return list(self.schema.names) or None


def apply_two(
    name: str,
    operator: Operator,
    first: RecordedStream,
    second: RecordedStream,
    output_type: TypeInformation | None = None,
    *,
    key1: KeySpec | None = None,
    key2: KeySpec | None = None,
) -> RowStream:
    """Adds an operator that reads the rows of two streams and outputs rows."""
    left, right = first.as_rows(), second.as_rows()
    made = _add_two(name, operator, left, right, output_type, key1, key2)
    return RowStream(first.program, made, left.conversions() + right.conversions())


def apply_two_columns(
    name: str,
    operator: ColumnarJoin,
    first: ColumnStream,
    second: ColumnStream,
    key1: KeySpec | None = None,
    key2: KeySpec | None = None,
) -> ColumnStream:
    """Adds an operator that reads the columns of two streams and outputs columns."""
    schema = None
    if None not in (first.schema, second.schema):
        with located():
            schema = operator.output_schema(first.schema, second.schema)
    return ColumnStream(
        first.program,
        _add_two(name, operator, first, second, None, key1, key2),
        first.conversions() + second.conversions(),
        schema=schema,
    )


def _add_two(
    name: str,
    operator: Operator,
    first: RecordedStream,
    second: RecordedStream,
    output_type: TypeInformation | None,
    key1: KeySpec | None,
    key2: KeySpec | None,
) -> Transformation:
    program = first.program
    transformation = TwoInputTransformation(
        id=program.next_id(),
        name=name,
        input1=first.transformation,
        input2=second.transformation,
        operator=operator,
        key1=key1,
        key2=key2,
        output_type=output_type,
        where=caller(),
    )
    program.add(transformation)
    return transformation


def copy_place(source: Transformation, target: Transformation) -> None:
    """Makes ``target`` run where ``source`` does."""
    target.parallelism, target.max_parallelism = source.parallelism, source.max_parallelism
    target.slot_sharing_group, target.resources = source.slot_sharing_group, source.resources
