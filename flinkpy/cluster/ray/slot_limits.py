"""Computes how many slots a Ray cluster can have, and the error message when they are too few.
``workers`` supplies the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from flinkpy.core.options.engine import PARALLELISM, TASK_CPUS, TASK_SLOTS
from flinkpy.graph.resources import ResourceProfile

Amounts = Mapping[str, float]

_EPSILON = 1e-6  # Ray counts in ten-thousandths


@dataclass(frozen=True)
class RayResources:
    """The total resources of a cluster's nodes. ``elastic``: an autoscaler may add more."""

    nodes: tuple[Amounts, ...]
    elastic: bool = False

    def total(self, name: str) -> float:
        return sum(node.get(name, 0.0) for node in self.nodes)


def demand_of(profile: ResourceProfile, slots: int = 1) -> dict[str, float]:
    """Returns what a worker with ``slots`` slots of that profile takes, under Ray's names.

    >>> demand_of(ResourceProfile(cpus=0.5, gpus=1.0), slots=2)
    {'CPU': 1.0, 'GPU': 2.0}
    """
    amounts = {
        "CPU": profile.cpus,
        "GPU": profile.gpus,
        "memory": float(profile.memory),
        **dict(profile.extended),
    }
    return {name: amount * slots for name, amount in amounts.items() if amount > 0}


def actor_options(profile: ResourceProfile, slots: int) -> dict[str, object]:
    """Returns the same as options of the worker's actor."""
    amounts = demand_of(profile, slots)
    named = {
        name: amount for name, amount in amounts.items() if name not in ("CPU", "GPU", "memory")
    }
    options: dict[str, object] = {"num_cpus": amounts.get("CPU", 0)}
    if "GPU" in amounts:
        options["num_gpus"] = amounts["GPU"]
    if "memory" in amounts:
        options["memory"] = int(amounts["memory"])
    if named:
        options["resources"] = named
    return options


def max_slots(
    resources: RayResources, profile: ResourceProfile, slots_per_worker: int
) -> int | None:
    """Returns how many slots of that profile all nodes together can have, in workers of that size;
    None when there is no limit. A worker must fit on one node."""
    demand = demand_of(profile, slots_per_worker)
    if resources.elastic or not demand:
        return None
    return slots_per_worker * sum(_fitting(node, demand) for node in resources.nodes)


def explain(
    resources: RayResources, profile: ResourceProfile, wanted: int, slots_per_worker: int
) -> str:
    """Says why ``wanted`` slots cannot be had, and what to change."""
    demand = demand_of(profile)
    has = ", ".join(f"{_amount(name, resources.total(name))}" for name in demand)
    nodes = f" on {len(resources.nodes)} nodes" if len(resources.nodes) > 1 else ""
    text = (
        f"the job needs {wanted} slot{'s' if wanted != 1 else ''} of {_amounts(demand)}, this "
        f"Ray cluster has {has} in all{nodes}"
    )
    possible = max_slots(resources, profile, slots_per_worker) or 0
    if possible > 0 or nodes or slots_per_worker > 1:
        text += f", enough for {possible}"
    return (
        f"{text}: {', or '.join(_advice(resources, profile, wanted, slots_per_worker, possible))}"
    )


def _advice(
    resources: RayResources,
    profile: ResourceProfile,
    wanted: int,
    slots_per_worker: int,
    possible: int,
) -> list[str]:
    found = []
    if possible > 0:
        found.append(f"lower the parallelism (-p, {PARALLELISM.key})")
    cpus = resources.total("CPU")
    if profile.cpus > 0 and cpus > 0 and set(demand_of(profile)) == {"CPU"}:
        fitting = _round_down(min(profile.cpus, cpus / wanted))
        if 0 < fitting < profile.cpus:
            found.append(f"let a slot take less with -D {TASK_CPUS.key}={fitting:g}")
    if slots_per_worker > 1:
        found.append(
            f"put fewer slots into a TaskExecutor ({TASK_SLOTS.key} is {slots_per_worker})"
        )
    return [*found, "add nodes"]


def _fitting(node: Amounts, demand: Amounts) -> int:
    return min(int((node.get(name, 0.0) + _EPSILON) / amount) for name, amount in demand.items())


def _round_down(cpus: float) -> float:
    return int(cpus * 100 + _EPSILON) / 100


def _amounts(demand: Amounts) -> str:
    return " and ".join(_amount(name, amount) for name, amount in demand.items())


def _amount(name: str, amount: float) -> str:
    if name == "memory":
        return f"{amount / (1 << 20):.0f} MB"
    unit = name if name in ("CPU", "GPU") else f"of {name!r}"
    return f"{amount:g} {unit}{'s' if name in ('CPU', 'GPU') and amount != 1 else ''}"


def resources_of(nodes: Sequence[Mapping[str, object]], elastic: bool) -> RayResources:
    """Builds the resources from the result of ``ray.nodes()``."""
    alive = [node["Resources"] for node in nodes if node.get("Alive")]
    return RayResources(
        tuple(dict(amounts) for amounts in alive if isinstance(amounts, Mapping)), elastic
    )
