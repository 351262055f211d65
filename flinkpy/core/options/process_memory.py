"""The parts of a process's memory, derived from options by Flink's rules.

A part that is not given comes from a total: of the whole process, or of what Flink calls its own
memory, which is the process without the interpreter and the overhead. Where the parts are given,
the totals are their sums. What contradicts itself is refused, with both options and both sizes.
Flink's fractions have 32 bits and ours 64, so sizes differ from Flink's by some bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options import memory_sizes as options
from flinkpy.core.options.schema import Option, key_in, read

Values = Mapping[str, Any]
_DEFAULT_NETWORK = 64 << 20
Size = Option[Any]


@dataclass(frozen=True)
class WorkerMemory:
    """The parts of a TaskExecutor's memory, in bytes.

    >>> WorkerMemory.of({"taskmanager.memory.process.size": "1728m"}).task_heap >> 20
    384
    """

    framework_heap: int = 0
    task_heap: int = 0
    framework_off_heap: int = 0
    task_off_heap: int = 0
    managed: int = 0
    network: int = 0
    interpreter: int = 0
    overhead: int = 0

    @property
    def flink(self) -> int:
        """All but the interpreter and the overhead."""
        return self.process - self.interpreter - self.overhead

    @property
    def process(self) -> int:
        """The sum of the parts."""
        return (
            self.framework_heap
            + self.task_heap
            + self.framework_off_heap
            + self.task_off_heap
            + self.managed
            + self.network
            + self.interpreter
            + self.overhead
        )

    @staticmethod
    def of(values: Values) -> WorkerMemory:
        """The memory of a TaskExecutor with these options. Raises ConfigurationError if they give
        no size (``is_given``), or contradict each other."""
        return _Worker(values).derived()

    @staticmethod
    def is_given(values: Values) -> bool:
        """Whether the options say how large a TaskExecutor is."""
        return _WORKER.are_sizes_given(values) or (
            read(values, options.TASK_HEAP) is not None
            and read(values, options.MANAGED) is not None
        )


@dataclass(frozen=True)
class JobManagerMemory:
    """The parts of the JobManager's memory, in bytes.

    >>> JobManagerMemory.of({"jobmanager.memory.process.size": "1600m"}).heap >> 20
    1024
    """

    heap: int = 0
    off_heap: int = 0
    interpreter: int = 0
    overhead: int = 0

    @property
    def flink(self) -> int:
        """All but the interpreter and the overhead."""
        return self.heap + self.off_heap

    @property
    def process(self) -> int:
        """The sum of the parts."""
        return self.flink + self.interpreter + self.overhead

    @staticmethod
    def of(values: Values) -> JobManagerMemory:
        """The memory of a JobManager with these options. Raises ConfigurationError if they give
        no size (``is_given``), or contradict each other."""
        heap, off_heap = _parts_of_master(values)
        around = _MASTER.around(values, heap + off_heap)
        return JobManagerMemory(heap, off_heap, *around)

    @staticmethod
    def is_given(values: Values) -> bool:
        """Whether the options say how large the JobManager is."""
        return _MASTER.are_sizes_given(values) or read(values, options.MASTER_HEAP) is not None


def network_memory(values: Values) -> int:
    """Bytes of batches that a TaskExecutor may have on their way."""
    if WorkerMemory.is_given(values):
        return WorkerMemory.of(values).network
    size: int | None = read(values, options.NETWORK)
    return _DEFAULT_NETWORK if size is None else size


def memory_of_machine(
    size: int, cores: int, slots: int, values: Values | None = None
) -> WorkerMemory:
    """The parts that a TaskExecutor has where no option limits it: its slots' share of a machine
    with so many bytes and cores, with the sizes and fractions of parts that options give. If that
    is too little for the parts, only what options say is managed.

    >>> managed = {"taskmanager.memory.managed.size": "16m"}
    >>> memory_of_machine(16 << 30, cores=4, slots=1, values=managed).managed >> 20
    16
    """
    values = values or {}
    share = size * slots // max(1, slots, cores)
    try:
        return WorkerMemory.of({**values, options.PROCESS.key: share})
    except ConfigurationError:
        return WorkerMemory(managed=read(values, options.MANAGED) or 0)


# -- a share of a total, within limits -------------------------------------------------------------


@dataclass(frozen=True)
class _Share:
    """A part that is a fraction of a total, at least and at most so much."""

    name: str
    fraction: Size
    least: Size
    most: Size

    def of(self, values: Values, total: int) -> int:
        """The part of a total that it is contained in."""
        fraction, least, most = self._limits(values)
        return self._within(int(total * fraction), least, most)

    def beside(self, values: Values, rest: int) -> int:
        """The part, if all others of its total are ``rest``."""
        fraction, least, most = self._limits(values)
        return self._within(int(rest * (fraction / (1 - fraction))), least, most)

    def check(self, values: Values, left: int, total: str) -> None:
        """Raises ConfigurationError if what is left for the part is outside its limits."""
        _, least, most = self._limits(values)
        if left < least:
            raise ConfigurationError(
                f"{total} leaves {_mb(left)} for {self.name}, and "
                f"{_shown(values, self.least)} wants more; raise the one or lower the other"
            )
        if most is not None and left > most:
            raise ConfigurationError(
                f"{total} leaves {_mb(left)} for {self.name}, and "
                f"{_shown(values, self.most)} allows less; lower the one or raise the other"
            )

    def _limits(self, values: Values) -> tuple[float, int, int | None]:
        fraction = _below_one(values, self.fraction)
        least, most = read(values, self.least), read(values, self.most)
        if most is not None and least > most:
            raise ConfigurationError(
                f"{_shown(values, self.least)} is more than {_shown(values, self.most)}; "
                "drop one of them"
            )
        return fraction, least, most

    @staticmethod
    def _within(size: int, least: int, most: int | None) -> int:
        return max(least, size if most is None else min(size, most))


# -- the process around its Flink memory -----------------------------------------------------------


@dataclass(frozen=True)
class _Process:
    """The options of what both kinds of process have."""

    process: Size
    flink: Size
    interpreter: Size
    overhead: _Share

    def are_sizes_given(self, values: Values) -> bool:
        return read(values, self.process) is not None or read(values, self.flink) is not None

    def inside(self, values: Values) -> int:
        """What ``process.size`` leaves for the Flink memory."""
        process, interpreter = read(values, self.process), read(values, self.interpreter)
        overhead = self.overhead.of(values, process)
        if interpreter + overhead > process:
            raise ConfigurationError(
                f"{_shown(values, self.process)} does not hold the interpreter "
                f"({_shown(values, self.interpreter)}) and the overhead ({_mb(overhead)}, at "
                f"least {_shown(values, self.overhead.least)}); raise {self.process.key}"
            )
        return int(process - interpreter - overhead)

    def around(self, values: Values, flink: int) -> tuple[int, int]:
        """The interpreter's part and the overhead, around so much Flink memory."""
        process, interpreter = read(values, self.process), read(values, self.interpreter)
        if process is None:
            return interpreter, self.overhead.beside(values, flink + interpreter)
        left = process - flink - interpreter
        if left < 0:
            raise ConfigurationError(
                f"{_shown(values, self.process)} is less than the Flink memory, "
                f"{_mb(flink)}, and the interpreter, {_shown(values, self.interpreter)}, "
                "together; raise it, or drop the sizes of the parts"
            )
        self.overhead.check(values, left, _shown(values, self.process))
        return interpreter, left


_WORKER = _Process(
    options.PROCESS,
    options.FLINK,
    options.INTERPRETER,
    _Share("the overhead", options.OVERHEAD_FRACTION, options.OVERHEAD_MIN, options.OVERHEAD_MAX),
)
_MASTER = _Process(
    options.MASTER_PROCESS,
    options.MASTER_FLINK,
    options.MASTER_INTERPRETER,
    _Share(
        "the overhead",
        options.MASTER_OVERHEAD_FRACTION,
        options.MASTER_OVERHEAD_MIN,
        options.MASTER_OVERHEAD_MAX,
    ),
)
_NETWORK = _Share("the network", options.NETWORK_FRACTION, options.NETWORK_MIN, options.NETWORK_MAX)


# -- the parts of a TaskExecutor -------------------------------------------------------------------


class _Worker:
    """Derives the parts, in Flink's order of precedence."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._task_heap = read(values, options.TASK_HEAP)
        self._framework_heap = read(values, options.FRAMEWORK_HEAP)
        self._framework_off_heap = read(values, options.FRAMEWORK_OFF_HEAP)
        self._task_off_heap = read(values, options.TASK_OFF_HEAP)

    def derived(self) -> WorkerMemory:
        values = self._values
        managed, flink = read(values, options.MANAGED), read(values, options.FLINK)
        if self._task_heap is not None and managed is not None:
            return self._of_parts(managed, flink)
        if flink is not None:
            return self._of_flink(flink)
        if read(values, options.PROCESS) is not None:
            return self._of_flink(_WORKER.inside(values))
        raise ConfigurationError(
            f"nothing says how large a TaskExecutor is: set {options.PROCESS.key}, or "
            f"{options.FLINK.key}, or {options.TASK_HEAP.key} and {options.MANAGED.key}"
        )

    def _of_parts(self, managed: int, flink: int | None) -> WorkerMemory:
        """Tasks' heap and managed memory are given; the total follows, or the network's part."""
        rest = self._without_network(managed)
        if flink is None:
            size = read(self._values, options.NETWORK)
            network = _NETWORK.beside(self._values, rest) if size is None else size
        else:
            network = self._left_for_network(flink, managed)
        return self._whole(self._task_heap, managed, network)

    def _of_flink(self, flink: int) -> WorkerMemory:
        values = self._values
        managed = read(values, options.MANAGED)
        if managed is None:
            managed = int(flink * _below_one(values, options.MANAGED_FRACTION))
        if self._task_heap is not None:
            network = self._left_for_network(flink, managed)
            return self._whole(self._task_heap, managed, network)
        size = read(values, options.NETWORK)
        network = _NETWORK.of(values, flink) if size is None else size
        heap = flink - self._without_network(managed) - network
        if heap < 0:
            raise ConfigurationError(
                f"the parts add up to {_mb(flink - heap)} without the tasks' heap: "
                f"{self._shown_parts(managed)}, network {_mb(network)}. "
                f"{self._total(flink)} is less; raise it or lower a part"
            )
        return self._whole(heap, managed, network)

    def _whole(self, heap: int, managed: int, network: int) -> WorkerMemory:
        parts = (
            self._framework_heap,
            heap,
            self._framework_off_heap,
            self._task_off_heap,
            managed,
            network,
        )
        return WorkerMemory(*parts, *_WORKER.around(self._values, sum(parts)))

    def _without_network(self, managed: int) -> int:
        return int(
            self._framework_heap
            + (self._task_heap or 0)
            + self._framework_off_heap
            + self._task_off_heap
            + managed
        )

    def _left_for_network(self, flink: int, managed: int) -> int:
        rest, values = self._without_network(managed), self._values
        left = flink - rest
        if left < 0:
            raise ConfigurationError(
                f"the parts add up to {_mb(rest)}: {self._shown_parts(managed)}, "
                f"tasks' heap {_mb(self._task_heap)}. {self._total(flink)} is less; raise it "
                "or drop the size of a part"
            )
        size = read(values, options.NETWORK)
        if size is None:
            _NETWORK.check(values, left, self._total(flink))
        elif size != left:
            raise ConfigurationError(
                f"{self._total(flink)} leaves {_mb(left)} for the network, and "
                f"{_shown(values, options.NETWORK)} says another size; drop one of them"
            )
        return left

    def _shown_parts(self, managed: int) -> str:
        return (
            f"framework's heap {_mb(self._framework_heap)} and off-heap "
            f"{_mb(self._framework_off_heap)}, tasks' off-heap "
            f"{_mb(self._task_off_heap)}, managed {_mb(managed)}"
        )

    def _total(self, flink: int) -> str:
        """The total as the user gave it."""
        if read(self._values, options.FLINK) is not None:
            return _shown(self._values, options.FLINK)
        return f"The Flink memory of {_mb(flink)} ({_shown(self._values, options.PROCESS)})"


# -- the parts of the JobManager -------------------------------------------------------------------


def _parts_of_master(values: Values) -> tuple[int, int]:
    heap, flink = read(values, options.MASTER_HEAP), read(values, options.MASTER_FLINK)
    off_heap = read(values, options.MASTER_OFF_HEAP)
    if heap is None:
        if flink is None:
            if read(values, options.MASTER_PROCESS) is None:
                raise ConfigurationError(
                    f"nothing says how large the JobManager is: set {options.MASTER_PROCESS.key}, "
                    f"{options.MASTER_FLINK.key} or {options.MASTER_HEAP.key}"
                )
            flink = _MASTER.inside(values)
        if flink < off_heap:
            raise ConfigurationError(
                f"the JobManager's Flink memory of {_mb(flink)} does not hold "
                f"{_shown(values, options.MASTER_OFF_HEAP)}; raise the total or lower the part"
            )
        return flink - off_heap, off_heap
    if flink is None:
        return heap, off_heap
    if heap > flink:
        raise ConfigurationError(
            f"{_shown(values, options.MASTER_HEAP)} is more than "
            f"{_shown(values, options.MASTER_FLINK)}; drop one of them"
        )
    if key_in(values, options.MASTER_OFF_HEAP) in values and heap + off_heap != flink:
        raise ConfigurationError(
            f"{_shown(values, options.MASTER_HEAP)} and {_shown(values, options.MASTER_OFF_HEAP)} "
            f"add up to {_mb(heap + off_heap)}, and {_shown(values, options.MASTER_FLINK)} "
            "says another size; drop one of them"
        )
    return heap, flink - heap


# -- what both use ---------------------------------------------------------------------------------


def _below_one(values: Values, fraction: Size) -> float:
    """The fraction. Raises ConfigurationError if nothing is left beside it."""
    share: float = read(values, fraction)
    if share >= 1:
        raise ConfigurationError(
            f"option {key_in(values, fraction)}: {share} is all of the memory or more; it must be "
            "below 1"
        )
    return share


def _shown(values: Values, wanted: Size) -> str:
    """The option with its size, as in a file of options."""
    return f"{key_in(values, wanted)}: {_mb(read(values, wanted))}"


def _mb(size: int) -> str:
    """
    >>> _mb(1_811_939_328)
    '1,728.0 MB'
    """
    return f"{size / (1 << 20):,.1f} MB"
