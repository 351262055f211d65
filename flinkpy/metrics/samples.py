"""Metrics as exporters have them: one list, each with its scope, its name and its labels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from flinkpy.metrics.definitions import BY_NAME, Kind, Scope
from flinkpy.metrics.readings import OperatorReading, ProcessReading, Statistics, TaskReading

Labels = dict[str, str]


class Sample(NamedTuple):
    """``path`` are the groups and the name: ``("Shuffle", "Netty", "Input", "Buffers",
    "inPoolUsage")``."""

    scope: Scope
    path: tuple[str, ...]
    kind: Kind
    value: float | Statistics
    labels: Labels
    meaning: str = ""


def of_engine(
    scope: Scope, values: Mapping[str, float | Statistics], labels: Labels
) -> Iterator[Sample]:
    """The engine's own metrics of one thing; those that the table does not have are left out."""
    for name, value in values.items():
        definition = BY_NAME.get((scope, name))
        if definition is not None:
            yield Sample(
                scope, tuple(name.split(".")), definition.kind, value, labels, definition.meaning
            )


def of_process(tm_id: str, host: str, reading: ProcessReading) -> Iterator[Sample]:
    """Those of a TaskExecutor and of its tasks."""
    labels = {"host": host, "tm_id": tm_id}
    yield from of_engine(Scope.TASK_MANAGER, reading.values, labels)
    for task in reading.tasks:
        yield from _of_task(task, labels)


def _of_task(task: TaskReading, process: Labels) -> Iterator[Sample]:
    job_id, vertex_id, subtask, attempt = task.attempt_id
    labels = {
        **process,
        "job_id": job_id,
        "job_name": task.job_name,
        "task_id": vertex_id,
        "task_name": task.task_name,
        "task_attempt_id": f"{vertex_id}_{subtask}_{attempt}",
        "task_attempt_num": str(attempt),
        "subtask_index": str(subtask),
    }
    yield from of_engine(Scope.TASK, task.values, labels)
    for operator in task.operators:
        yield from _of_operator(
            operator,
            {**labels, "operator_id": operator.operator_id, "operator_name": operator.name},
        )


def _of_operator(operator: OperatorReading, labels: Labels) -> Iterator[Sample]:
    yield from of_engine(Scope.OPERATOR, operator.values, labels)
    for own in operator.own:
        value = own.value
        if isinstance(value, str):  # texts are for REST
            continue
        all_labels = {**labels, **dict(own.labels)}
        # a distribution, or a gauge with several numbers
        if own.kind is Kind.GAUGE and isinstance(value, Mapping):
            for name, number in value.items():
                yield Sample(
                    Scope.OPERATOR,
                    (*own.logical[:-1], f"{own.logical[-1]}_{name}"),
                    Kind.GAUGE,
                    number,
                    all_labels,
                )
        else:
            yield Sample(Scope.OPERATOR, own.logical, own.kind, value, all_labels)


def numbers(samples: Iterable[Sample]) -> Iterator[tuple[Sample, str, float]]:
    """Each sample as plain numbers, with the end of its name: a meter is its rate, a histogram a
    number for each statistic."""
    for sample in samples:
        value = sample.value
        if not isinstance(value, Mapping):
            yield sample, "", value
        elif sample.kind is Kind.METER:
            yield sample, "", value.get("rate", 0.0)
        else:
            for name, number in value.items():
                yield sample, f"_{name}", number
