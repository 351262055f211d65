"""The stream behind an operator that sees all records, and so has one subtask whatever the program says elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from flinkpy.datastream.checks import refuse
from flinkpy.datastream.data_stream import DataStream

if TYPE_CHECKING:
    from flinkpy.datastream.stream_execution_environment import StreamExecutionEnvironment
    from flinkpy.graph.transformations import Transformation

Self = TypeVar("Self", bound="NonParallelStream")


class NonParallelStream(DataStream):
    """Its operator's parallelism is 1 and stays so."""

    def __init__(self, env: StreamExecutionEnvironment, transformation: Transformation, *, columnar: bool = False, schema: Any = None,
                 helpers: tuple[Transformation, ...] = ()) -> None:
        super().__init__(env, transformation, columnar=columnar, schema=schema, helpers=helpers)
        self.set_parallelism(1)
        self.set_max_parallelism(1)

    def set_parallelism(self: Self, parallelism: int) -> Self:
        if parallelism != 1:
            raise refuse(f"{self.get_name()} sees the records of all keys, its parallelism must be 1, not {parallelism!r}; "
                         "key_by(...) and window(...) share the work out")
        return super().set_parallelism(parallelism)

    def set_max_parallelism(self: Self, max_parallelism: int) -> Self:
        if max_parallelism != 1:
            raise refuse(f"{self.get_name()} sees the records of all keys, its max parallelism must be 1, not {max_parallelism!r}")
        return super().set_max_parallelism(max_parallelism)
