"""Random options of memory, and what is derived from them here."""

from __future__ import annotations

import random
from dataclasses import astuple

from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.process_memory import JobManagerMemory, WorkerMemory

# how often an option is set, and the sizes in MB between which it lies
_WORKER = {
    "process.size": (0.6, 300, 9000),
    "flink.size": (0.4, 200, 7000),
    "framework.heap.size": (0.2, 0, 400),
    "framework.off-heap.size": (0.2, 0, 400),
    "task.heap.size": (0.4, 0, 3000),
    "task.off-heap.size": (0.3, 0, 500),
    "managed.size": (0.4, 0, 2500),
    "network.min": (0.2, 1, 300),
    "network.max": (0.2, 50, 1200),
    "jvm-metaspace.size": (0.2, 50, 500),
    "jvm-overhead.min": (0.2, 10, 400),
    "jvm-overhead.max": (0.2, 100, 1500),
}
_MASTER = {
    "process.size": (0.6, 300, 5000),
    "flink.size": (0.4, 100, 4000),
    "heap.size": (0.4, 0, 2500),
    "off-heap.size": (0.4, 0, 900),
    "jvm-metaspace.size": (0.2, 50, 500),
    "jvm-overhead.min": (0.2, 10, 400),
    "jvm-overhead.max": (0.2, 100, 1500),
}
_FRACTIONS = {"tm": ("managed", "network", "jvm-overhead"), "jm": ("jvm-overhead",)}


def random_line(numbers: random.Random) -> str:
    """The kind of a process, and options of its memory."""
    kind = "tm" if numbers.random() < 0.75 else "jm"
    prefix = "taskmanager.memory." if kind == "tm" else "jobmanager.memory."
    found = [
        f"{prefix}{name}={numbers.randint(least, most)}m"
        for name, (chance, least, most) in (_WORKER if kind == "tm" else _MASTER).items()
        if numbers.random() < chance
    ]
    for name in _FRACTIONS[kind]:
        if numbers.random() < 0.25:
            share = round(numbers.uniform(0, 1.05), 2)
            found.append(f"{prefix}{name}.fraction={share}")
    return f"{kind} {';'.join(found)}"


def derived(line: str) -> tuple[int, ...] | str:
    """The parts in bytes, with both totals behind them; or the error."""
    kind, _, options = line.partition(" ")
    values = dict(each.split("=") for each in options.split(";") if each)
    try:
        memory = (WorkerMemory if kind == "tm" else JobManagerMemory).of(values)
    except ConfigurationError as error:
        return str(error)
    return (*astuple(memory), memory.flink, memory.process)


def is_equal(ours: tuple[int, ...] | str, flinks: str) -> bool:
    """Whether Flink derives the same, or refuses the same. Its fractions have 32 bits: a part may
    differ by some bytes in a gigabyte."""
    if isinstance(ours, str):
        return flinks.startswith("error")
    parts = flinks.split()
    some_bytes = 2 + ours[-1] * 1e-7
    return parts[0] == "ok" and all(
        abs(one - int(other)) <= some_bytes for one, other in zip(ours, parts[1:], strict=True)
    )
