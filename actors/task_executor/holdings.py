"""Holdings: what a TaskExecutor holds for its jobs: slots, the tasks in them, and blocking results.
It only decides; others act."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.actors.gateways import SlotReport
from flinkpy.actors.task_executor.slot_table import TaskSlot, TaskSlotTable
from flinkpy.core.ids import ExecutionAttemptId, JobId
from flinkpy.graph.deployment import TaskDeploymentDescriptor


class Holdings:
    """``sequence`` grows with every change, so that a receiver can tell which of two reports is
    newer."""

    def __init__(self, slots: TaskSlotTable) -> None:
        self.slots = slots
        self.sequence = 0
        # running tasks that will leave blocking results behind
        self._leaves_results: set[ExecutionAttemptId] = set()
        self._results: dict[JobId, dict[ExecutionAttemptId, None]] = {}

    def count_change(self) -> None:
        self.sequence += 1

    def slot_report(self) -> SlotReport:
        return SlotReport(self.sequence, self.slots.report(), bool(self._results))

    def holds_anything_for(self, job_id: JobId) -> bool:
        return bool(self.slots.of_job(job_id)) or job_id in self._results

    # -- tasks -------------------------------------------------------------------------------------

    def add_task(self, descriptor: TaskDeploymentDescriptor) -> TaskSlot:
        """Adds the task to its slot. Raises SlotNotAvailableError when the slot is not held for the
        task's job."""
        slot = self.slots.add_task(descriptor.attempt_id, descriptor.allocation_id)
        if any(partition.partition_type.is_blocking for partition in descriptor.partitions):
            self._leaves_results.add(descriptor.attempt_id)
        return slot

    def remove_task(self, attempt_id: ExecutionAttemptId) -> tuple[bool, bool]:
        """Removes a task that has ended. Returns whether this freed its slot, and whether it may
        have left results behind."""
        freed = self.slots.remove_task(attempt_id)
        self.sequence += 1
        left_results = attempt_id in self._leaves_results
        self._leaves_results.discard(attempt_id)
        return freed, left_results

    # -- blocking results --------------------------------------------------------------------------

    @property
    def keeps_results(self) -> bool:
        return bool(self._results)

    def kept_results(self) -> set[ExecutionAttemptId]:
        """The finished attempts whose blocking results are kept for their readers."""
        return {attempt_id for of_job in self._results.values() for attempt_id in of_job}

    def results_of(self, job_id: JobId) -> tuple[ExecutionAttemptId, ...]:
        return tuple(self._results.get(job_id, ()))

    def keep_results(self, attempt_id: ExecutionAttemptId) -> None:
        self._results.setdefault(attempt_id.job_id, {})[attempt_id] = None

    def remove_results(self, attempt_ids: Iterable[ExecutionAttemptId]) -> list[ExecutionAttemptId]:
        """Removes results that nobody will read any more. Returns those that were kept: their
        partitions are to be released."""
        removed = [
            attempt_id
            for attempt_id in attempt_ids
            if attempt_id in self._results.get(attempt_id.job_id, ())
        ]
        for attempt_id in removed:
            of_job = self._results[attempt_id.job_id]
            del of_job[attempt_id]
            if not of_job:
                del self._results[attempt_id.job_id]
        return removed

    def __repr__(self) -> str:
        return f"<Holdings {self.slots.statistics()}, results of {len(self.kept_results())} tasks>"
