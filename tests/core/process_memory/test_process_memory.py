from __future__ import annotations

import re
from pathlib import Path

import pytest

from flinkpy.cli.shown.memory_parts import show_memory
from flinkpy.core.errors import ConfigurationError
from flinkpy.core.options.engine import NetworkConfig
from flinkpy.core.options.process_memory import (
    JobManagerMemory,
    WorkerMemory,
    memory_of_machine,
    network_memory,
)
from tests.core.process_memory.random_sizes import derived, is_equal

OF_FLINK = [
    tuple(line.split("\t"))
    for line in (Path(__file__).parent / "of_flink.tsv").read_text().splitlines()
]
# options without "taskmanager.memory.", or with "jm" without "jobmanager.memory."; what is said
CONTRADICTIONS = [
    ("process.size=200m", r"process.size: 200.0 MB does not hold the interpreter \(.*256.0 MB\)"),
    ("process.size=1g;jvm-metaspace.size=1g", r"process.size: 1,024.0 MB does not hold"),
    ("process.size=600m", r"without the tasks' heap: .* The Flink memory of 152.0 MB \(.*process"),
    ("flink.size=300m", r"the parts add up to .* taskmanager.memory.flink.size: 300.0 MB is less"),
    ("flink.size=1g;managed.size=2g", r"managed 2,048.0 MB, .*flink.size: 1,024.0 MB is less"),
    ("process.size=2g;framework.heap.size=2g", r"framework's heap 2,048.0 MB"),
    ("process.size=2g;task.off-heap.size=2g", r"tasks' off-heap 2,048.0 MB"),
    (
        "flink.size=1g;task.heap.size=1g",
        r"tasks' heap 1,024.0 MB. .*flink.size: 1,024.0 MB is less",
    ),
    ("flink.size=1g;task.heap.size=1g;managed.size=1g", r"drop the size of a part"),
    (
        "process.size=1g;flink.size=2g",
        r"process.size: 1,024.0 MB is less than the Flink memory, 2,04",
    ),
    (
        "process.size=9g;flink.size=2g",
        r"process.size: 9,216.0 MB leaves 6,912.0 MB for the overhead, and .*overhead.max: 1,024.0",
    ),
    (
        "process.size=2400m;flink.size=2g",
        r"leaves 96.0 MB for the overhead, and .*overhead.min: 192.0 MB wants more",
    ),
    ("process.size=2g;network.fraction=1.0", r"network.fraction: 1.0 is all of the memory or more"),
    ("process.size=2g;managed.fraction=1.0", r"managed.fraction: 1.0 is all of the memory or more"),
    ("process.size=2g;jvm-overhead.fraction=1", r"jvm-overhead.fraction: 1.0 is all of the memory"),
    (
        "process.size=2g;network.min=1g;network.max=64m",
        r"network.min: 1,024.0 MB is more than .*max",
    ),
    (
        "flink.size=1g;jvm-overhead.min=2g",
        r"jvm-overhead.min: 2,048.0 MB is more than .*max: 1,024",
    ),
    (
        "flink.size=4g;task.heap.size=1g;network.max=64m",
        r"flink.size: 4,096.0 MB leaves 1,177.6 MB for the network, and .*max: 64.0 MB allows less",
    ),
    (
        "flink.size=1g;task.heap.size=300m;managed.size=420m",
        r"leaves 48.0 MB for the network, and .*network.min: 64.0 MB wants more",
    ),
    (
        "flink.size=1g;task.heap.size=300m;managed.size=300m;network.size=64m",
        r"leaves 168.0 MB for the network, and .*network.size: 64.0 MB says another size",
    ),
    ("jm process.size=300m", r"jobmanager.memory.process.size: 300.0 MB does not hold the interp"),
    ("jm flink.size=100m", r"Flink memory of 100.0 MB does not hold .*off-heap.size: 128.0 MB"),
    (
        "jm heap.size=2g;flink.size=1g",
        r"heap.size: 2,048.0 MB is more than .*flink.size: 1,024.0 MB",
    ),
    (
        "jm heap.size=500m;off-heap.size=1g;flink.size=1g",
        r"add up to 1,524.0 MB, and .*flink.size: 1,024.0 MB says another size",
    ),
]


def test_parts_are_those_that_flink_derives() -> None:
    different = [
        (line, ours, flinks)
        for line, flinks in OF_FLINK
        if not is_equal(ours := derived(line), flinks)
    ]
    assert different == []
    assert len(OF_FLINK) == 60


@pytest.mark.parametrize(("options", "said"), CONTRADICTIONS)
def test_contradictions_name_the_options_and_their_sizes(options: str, said: str) -> None:
    kind, prefix = ("jm", "jobmanager") if options.startswith("jm ") else ("tm", "taskmanager")
    full = ";".join(f"{prefix}.memory.{each}" for each in options.removeprefix("jm ").split(";"))
    message = derived(f"{kind} {full}")
    assert isinstance(message, str)
    assert re.search(said, message), message


def test_without_a_size_there_is_nothing_to_derive_from() -> None:
    assert not WorkerMemory.is_given({})
    assert not JobManagerMemory.is_given({})
    with pytest.raises(ConfigurationError, match="how large a TaskExecutor is: set taskmanager"):
        WorkerMemory.of({"taskmanager.memory.managed.size": "1g"})
    with pytest.raises(ConfigurationError, match="how large the JobManager is: set jobmanager"):
        JobManagerMemory.of({})


def test_the_network_of_a_taskexecutor_has_the_derived_size() -> None:
    assert network_memory({}) == 64 << 20
    assert network_memory({"taskmanager.memory.network.size": "8m"}) == 8 << 20
    sized = {"taskmanager.memory.process.size": "4g"}
    assert network_memory(sized) == WorkerMemory.of(sized).network > 300 << 20
    assert NetworkConfig.of(sized).total_segments == network_memory(sized) // (32 << 10)


def test_where_nothing_is_said_the_parts_are_of_the_slots_share_of_the_machine() -> None:
    assert memory_of_machine(16 << 30, cores=4, slots=1).process == 4 << 30
    assert memory_of_machine(16 << 30, cores=4, slots=8).process == 16 << 30
    assert memory_of_machine(500 << 20, cores=1, slots=1) == WorkerMemory()


@pytest.mark.parametrize("machine", [16 << 30, 500 << 20])
def test_managed_memory_has_its_size_where_nothing_else_is_said(machine: int) -> None:
    values = {"taskmanager.memory.managed.size": "64m"}
    assert memory_of_machine(machine, cores=1, slots=1, values=values).managed == 64 << 20


def test_the_fraction_that_is_managed_is_of_the_machine_where_nothing_else_is_said() -> None:
    fraction = "taskmanager.memory.managed.fraction"
    fifth, half = (
        memory_of_machine(16 << 30, cores=4, slots=1, values={fraction: each})
        for each in (0.2, 0.5)
    )
    assert fifth.process == half.process == 4 << 30
    assert half.managed == pytest.approx(2.5 * fifth.managed)


def test_an_interpreters_size_may_stand_under_its_own_name() -> None:
    size = {"taskmanager.memory.process.size": "2g", "taskmanager.memory.interpreter.size": "512m"}
    assert WorkerMemory.of(size).interpreter == 512 << 20


def test_the_calculator_refuses_weights_that_are_none() -> None:
    with pytest.raises(ConfigurationError, match=r"consumer-weights: 'FOO:70' is not a kind"):
        show_memory(["taskmanager.memory.managed.consumer-weights=FOO:70"], None)
