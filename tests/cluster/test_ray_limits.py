from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flinkpy.cluster.ray.slot_limits import (
    RayResources,
    actor_options,
    demand_of,
    explain,
    max_slots,
    resources_of,
)
from flinkpy.graph.resources import ANY, ResourceProfile

ONE_CPU = ResourceProfile(cpus=1.0)
TWO_CPUS = RayResources(({"CPU": 2.0},))


def test_a_worker_lives_on_one_node() -> None:
    nodes = RayResources(({"CPU": 3.0}, {"CPU": 3.0}))
    assert max_slots(nodes, ONE_CPU, 1) == 6
    assert max_slots(nodes, ONE_CPU, 2) == 4
    assert max_slots(nodes, ONE_CPU, 4) == 0


def test_tenths_of_a_cpu_add_up() -> None:
    assert max_slots(RayResources(({"CPU": 1.0},)), ResourceProfile(cpus=0.1), 1) == 10


def test_the_scarcest_resource_decides() -> None:
    node = RayResources(({"CPU": 8.0, "GPU": 1.0, "disk": 4.0},))
    assert max_slots(node, ResourceProfile(cpus=1.0, gpus=0.25, extended=(("disk", 2.0),)), 1) == 2


def test_what_takes_nothing_has_no_limit() -> None:
    assert max_slots(TWO_CPUS, ANY, 1) is None


def test_a_cluster_that_can_grow_has_no_limit() -> None:
    assert max_slots(RayResources(({"CPU": 2.0},), elastic=True), ONE_CPU, 1) is None


def test_the_message_has_the_numbers_and_the_options() -> None:
    text = explain(TWO_CPUS, ONE_CPU, 4, 1)
    assert text == (
        "the job needs 4 slots of 1 CPU, this Ray cluster has 2 CPUs in all, enough for "
        "2: lower the parallelism (-p, parallelism.default), "
        "or let a slot take less with -D taskmanager.ray.num-cpus-per-slot=0.5, or add nodes"
    )


def test_a_missing_named_resource_is_named() -> None:
    text = explain(TWO_CPUS, ResourceProfile(cpus=1.0, extended=(("tpu", 1.0),)), 1, 1)
    assert "1 CPU and 1 of 'tpu'" in text
    assert "0 of 'tpu' in all" in text
    assert text.endswith(": add nodes")


def test_too_large_workers_are_named() -> None:
    assert "taskmanager.numberOfTaskSlots is 4" in explain(TWO_CPUS, ONE_CPU, 2, 4)


@given(
    cpus=st.integers(1, 64),
    nodes=st.integers(1, 4),
    slot=st.sampled_from([0.1, 0.25, 0.5, 1.0, 2.0]),
    wanted=st.integers(1, 500),
)
def test_what_the_message_advises_is_enough_on_one_node(
    cpus: int, nodes: int, slot: float, wanted: int
) -> None:
    cluster = RayResources(({"CPU": float(cpus)},))
    text = explain(cluster, ResourceProfile(cpus=slot), wanted, 1)
    if "num-cpus-per-slot=" in text:
        advised = float(text.split("num-cpus-per-slot=")[1].split(",")[0])
        possible = max_slots(cluster, ResourceProfile(cpus=advised), 1)
        assert possible is not None
        assert possible >= wanted


def test_actor_options_carry_every_resource() -> None:
    profile = ResourceProfile(cpus=0.5, gpus=1.0, memory=100, extended=(("disk", 1.0),))
    assert actor_options(profile, 2) == {
        "num_cpus": 1.0,
        "num_gpus": 2.0,
        "memory": 200,
        "resources": {"disk": 2.0},
    }
    assert actor_options(ANY, 3) == {"num_cpus": 0}
    assert demand_of(ANY) == {}


def test_dead_nodes_do_not_count() -> None:
    nodes = [
        {"Alive": True, "Resources": {"CPU": 2.0}},
        {"Alive": False, "Resources": {"CPU": 8.0}},
    ]
    assert resources_of(nodes, False).total("CPU") == pytest.approx(2.0)
