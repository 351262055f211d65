"""CachedDataStream: a bounded stream computed by the first job that uses it, and read again by the jobs behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.connectors.files.cached import CacheFolder, CacheSource, CacheWriter
from flinkpy.datastream.checks import refuse
from flinkpy.datastream.data_stream import DataStream
from flinkpy.graph.transformations import Transformation

if TYPE_CHECKING:
    from flinkpy.datastream.slot_sharing_group import SlotSharingGroup


class CachedDataStream(DataStream):
    """Given by ``stream.cache()``. What is built on it before its first job has ended computes it; what is built on it later reads the cache.
    The cache is in files of this program's machine and goes with the program; where the workers' files are not seen here, it is computed again.

    >>> squares = env.from_sequence(1, 100).map(lambda x: x * x).cache()  # doctest: +SKIP
    >>> list(squares.execute_and_collect()); list(squares.filter(lambda x: x > 50).execute_and_collect())  # doctest: +SKIP
    """

    def __init__(self, origin: DataStream) -> None:
        self._folder = CacheFolder()
        writer = origin._apply("Cache", CacheWriter(self._folder.path), origin._transformation.output_type, columnar=origin._columnar)
        self._computing = writer._transformation
        self._reading: Transformation | None = None
        super().__init__(origin._env, self._computing, columnar=origin._columnar, schema=origin._schema)

    @property
    def _transformation(self) -> Transformation:
        files = self._folder.complete()
        if files is None:
            self._reading = None
            return self._computing
        if self._reading is None:
            source = CacheSource(files, self._columnar, self._schema)
            self._reading = self._env._read(source, "Cache", self._computing.output_type)._transformation
            self._reading.parallelism = self._computing.parallelism
        return self._reading

    @_transformation.setter
    def _transformation(self, transformation: Transformation) -> None:
        """Set once, by the base class."""

    def invalidate(self) -> None:
        """Deletes the cache; the next job that uses the stream computes it again."""
        self._folder.clear()

    def cache(self) -> CachedDataStream:
        """It is cached already."""
        return self

    # -- a cached stream is no operator of its own: PyFlink refuses the same ----------------------------------------------------------------

    def name(self, name: str) -> NoReturn:
        raise _refused("name()")

    def get_name(self) -> NoReturn:
        raise _refused("get_name()")

    def uid(self, uid: str) -> NoReturn:
        raise _refused("uid()")

    def set_uid_hash(self, uid_hash: str) -> NoReturn:
        raise _refused("set_uid_hash()")

    def set_parallelism(self, parallelism: int) -> NoReturn:
        raise _refused("set_parallelism()")

    def set_max_parallelism(self, max_parallelism: int) -> NoReturn:
        raise _refused("set_max_parallelism()")

    def force_non_parallel(self) -> NoReturn:
        raise _refused("force_non_parallel()")

    def set_buffer_timeout(self, timeout_millis: int) -> NoReturn:
        raise _refused("set_buffer_timeout()")

    def start_new_chain(self) -> NoReturn:
        raise _refused("start_new_chain()")

    def disable_chaining(self) -> NoReturn:
        raise _refused("disable_chaining()")

    def slot_sharing_group(self, slot_sharing_group: str | SlotSharingGroup) -> NoReturn:
        raise _refused("slot_sharing_group()")

    def __repr__(self) -> str:
        return f"<CachedDataStream behind {self._computing.name!r}>"


def _refused(call: str) -> Any:
    return refuse(f"{call} is not for a cached stream: call it before cache(), or on what reads the stream")
