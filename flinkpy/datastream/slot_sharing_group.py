"""Slot sharing groups with resources: what a slot of the group must have."""

from __future__ import annotations

from flinkpy.core.errors import ProgramError
from flinkpy.core.options.schema import parse_memory
from flinkpy.graph.resources import ResourceProfile


class MemorySize:
    """An amount of memory.

    >>> MemorySize.of_mebi_bytes(64).get_bytes(), MemorySize.parse("1 gb").get_mebi_bytes()
    (67108864, 1024)
    """

    def __init__(self, bytes_size: int) -> None:
        if bytes_size < 0:
            raise ProgramError(f"an amount of memory cannot be negative ({bytes_size})")
        self._bytes = bytes_size

    @staticmethod
    def of_mebi_bytes(mebi_bytes: int) -> MemorySize:
        return MemorySize(mebi_bytes << 20)

    @staticmethod
    def parse(text: str) -> MemorySize:
        """Parses an amount such as ``64 mb`` or ``1g``."""
        return MemorySize(parse_memory(text))

    def get_bytes(self) -> int:
        return self._bytes

    def get_kibi_bytes(self) -> int:
        return self._bytes >> 10

    def get_mebi_bytes(self) -> int:
        return self._bytes >> 20

    def get_gibi_bytes(self) -> int:
        return self._bytes >> 30

    def get_tebi_bytes(self) -> int:
        return self._bytes >> 40

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MemorySize) and self._bytes == other._bytes

    def __lt__(self, other: MemorySize) -> bool:
        return self._bytes < other._bytes

    def __hash__(self) -> int:
        return hash(self._bytes)

    def __str__(self) -> str:
        return f"{self._bytes} bytes"

    def __repr__(self) -> str:
        return f"MemorySize({self._bytes})"


class SlotSharingGroup:
    """A slot sharing group: its name, and what its slots must have.

    >>> group = (
    ...     SlotSharingGroup.builder("gpu")
    ...     .set_cpu_cores(2)
    ...     .set_task_heap_memory_mb(512)
    ...     .set_external_resource("gpu", 1)
    ...     .build()
    ... )
    >>> group.get_cpu_cores(), group.get_external_resources()
    (2.0, {'gpu': 1.0})
    """

    def __init__(
        self,
        name: str,
        cpu_cores: float | None = None,
        heap: MemorySize | None = None,
        off_heap: MemorySize | None = None,
        managed: MemorySize | None = None,
        external: dict[str, float] | None = None,
    ) -> None:
        self._name = name
        self._cpu_cores = cpu_cores
        self._external = dict(external or {})
        self._heap = heap
        self._off_heap = off_heap
        self._managed = managed

    @staticmethod
    def builder(name: str) -> SlotSharingGroup.Builder:
        return SlotSharingGroup.Builder(name)

    def get_name(self) -> str:
        return self._name

    def get_cpu_cores(self) -> float | None:
        return self._cpu_cores

    def get_task_heap_memory(self) -> MemorySize | None:
        return self._heap

    def get_task_off_heap_memory(self) -> MemorySize | None:
        return self._off_heap

    def get_managed_memory(self) -> MemorySize | None:
        return self._managed

    def get_external_resources(self) -> dict[str, float]:
        return dict(self._external)

    def profile(self) -> ResourceProfile:
        """The group's demand on a slot. The resource called ``gpu`` counts as GPUs; the others are
        named Ray resources."""
        memory = sum(
            each.get_bytes()
            for each in (self._heap, self._off_heap, self._managed)
            if each is not None
        )
        external = dict(self._external)
        gpus = external.pop("gpu", external.pop("GPU", 0.0))
        return ResourceProfile(
            self._cpu_cores or 0.0, gpus, memory, tuple(sorted(external.items()))
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SlotSharingGroup) and (self._name, self.profile()) == (
            other._name,
            other.profile(),
        )

    def __hash__(self) -> int:
        return hash(self._name)

    def __repr__(self) -> str:
        return f"SlotSharingGroup({self._name!r}, {self.profile()})"

    class Builder:
        """Sets the demands one by one; a demand that is not set may be met by anything. Setters
        raise ProgramError for invalid values."""

        def __init__(self, name: str) -> None:
            if not isinstance(name, str) or not name:
                raise ProgramError(
                    f"a slot sharing group's name is text that is not empty, this is {name!r:.80}"
                )
            self._name = name
            self._cpu_cores: float | None = None
            self._heap: MemorySize | None = None
            self._off_heap: MemorySize | None = None
            self._managed: MemorySize | None = None
            self._external: dict[str, float] = {}

        def set_cpu_cores(self, cpu_cores: float) -> SlotSharingGroup.Builder:
            if not cpu_cores > 0:
                raise ProgramError(f"set_cpu_cores() takes a number above 0, this is {cpu_cores!r}")
            self._cpu_cores = float(cpu_cores)
            return self

        def set_task_heap_memory(
            self, task_heap_memory: MemorySize | str
        ) -> SlotSharingGroup.Builder:
            self._heap = _some(_memory(task_heap_memory))
            return self

        def set_task_heap_memory_mb(self, task_heap_memory_mb: int) -> SlotSharingGroup.Builder:
            self._heap = _some(MemorySize.of_mebi_bytes(task_heap_memory_mb))
            return self

        def set_task_off_heap_memory(
            self, task_off_heap_memory: MemorySize | str
        ) -> SlotSharingGroup.Builder:
            self._off_heap = _memory(task_off_heap_memory)
            return self

        def set_task_off_heap_memory_mb(
            self, task_off_heap_memory_mb: int
        ) -> SlotSharingGroup.Builder:
            self._off_heap = MemorySize.of_mebi_bytes(task_off_heap_memory_mb)
            return self

        def set_managed_memory(self, managed_memory: MemorySize | str) -> SlotSharingGroup.Builder:
            self._managed = _memory(managed_memory)
            return self

        def set_managed_memory_mb(self, managed_memory_mb: int) -> SlotSharingGroup.Builder:
            self._managed = MemorySize.of_mebi_bytes(managed_memory_mb)
            return self

        def set_external_resource(self, name: str, value: float) -> SlotSharingGroup.Builder:
            """Sets an amount of ``gpu``, or of a named resource of the Ray cluster."""
            if not isinstance(name, str) or not name or not value > 0:
                raise ProgramError(
                    "set_external_resource() takes a name and a number above 0, these are "
                    f"{name!r:.80} and {value!r:.80}"
                )
            self._external[name] = float(value)
            return self

        def build(self) -> SlotSharingGroup:
            """The group. Raises ProgramError for CPU cores without memory, as Flink does."""
            if self._cpu_cores is not None and self._heap is None:
                raise ProgramError(
                    f"slot sharing group {self._name!r} says how many CPU cores its slots "
                    "have, and not how much memory: "
                    "call set_task_heap_memory_mb(...), too"
                )
            return SlotSharingGroup(
                self._name,
                self._cpu_cores,
                self._heap,
                self._off_heap,
                self._managed,
                self._external,
            )


def _some(size: MemorySize) -> MemorySize:
    if size.get_bytes() == 0:
        raise ProgramError(
            "the task heap memory of a slot sharing group is more than 0; leave it out where "
            "it may be anything"
        )
    return size


def _memory(size: MemorySize | str) -> MemorySize:
    return size if isinstance(size, MemorySize) else MemorySize.parse(size)
