"""Cached streams: computed by the first job that uses them, and read from files by later jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from flinkpy.datastream.checks import refuse
from flinkpy.datastream.streams.reading import read_source
from flinkpy.datastream.streams.recorded import ColumnStream, RecordedStream

if TYPE_CHECKING:
    from flinkpy.datastream.slot_sharing_group import SlotSharingGroup


class Cache:
    """The cache of one stream: a folder of files, the stream that writes them, and a source that
    reads them when they are complete."""

    def __init__(self, origin: RecordedStream) -> None:
        from flinkpy.connectors.files.cached import CacheFolder, CacheWriter

        self._folder = CacheFolder()
        apply = origin.apply_columns if origin.is_columnar else origin.apply
        self.computing = apply("Cache", CacheWriter(self._folder.path), origin.output_type)
        self._schema = origin.schema if isinstance(origin, ColumnStream) else None
        self._reading: RecordedStream | None = None

    def stream(self) -> RecordedStream:
        """What a program that is built now reads: the cache if it is complete, else the stream that
        computes it."""
        files = self._folder.complete()
        if files is None:
            self._reading = None
            return self.computing
        if self._reading is None:
            from flinkpy.connectors.files.cached import CacheSource

            source = CacheSource(files, self.computing.is_columnar, self._schema)
            self._reading = read_source(
                self.computing.program, source, "Cache", self.computing.output_type
            )
            self._reading.transformation.parallelism = self.computing.transformation.parallelism
        return self._reading

    def invalidate(self) -> None:
        """Deletes the files."""
        self._folder.clear()


class NoOperator:
    """The methods that a cached stream refuses, as in PyFlink, because it has no operator of its
    own."""

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


def _refused(call: str) -> Any:
    return refuse(
        f"{call} is not for a cached stream: call it before cache(), or on what reads the stream"
    )
