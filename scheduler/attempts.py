"""What is done with the attempts of one job: they are scheduled, deployed, cancelled and ended, and
their blocking results released or lost."""

from __future__ import annotations

from collections.abc import Iterable

from flinkpy.core.errors import EngineError
from flinkpy.core.ids import ExecutionAttemptId, ResourceId
from flinkpy.core.lifecycles import ExecutionState
from flinkpy.graph.deployment import TaskManagerLocation
from flinkpy.scheduler.deploying import deploy_commands
from flinkpy.scheduler.execution_model import Execution, ExecutionVertex
from flinkpy.scheduler.execution_slots import SlotTable
from flinkpy.scheduler.job_lifecycle import JobLifecycle
from flinkpy.scheduler.planning.execution_plan import CurrentPlan
from flinkpy.scheduler.protocol import CancelTask, Command, ReleaseResults, ResultsLost

_S = ExecutionState


class Attempts:
    """Moves the attempts of the plan and their slots together. What must be done is written to
    ``commands``."""

    def __init__(
        self, plan: CurrentPlan, slots: SlotTable, job: JobLifecycle, commands: list[Command]
    ) -> None:
        self._plan = plan
        self._slots = slots
        self._job = job
        self._commands = commands

    # -- forward -----------------------------------------------------------------------------------

    def schedule_first(self) -> None:
        """The job starts."""
        self._schedule_bulks(self._plan.strategy.on_start())

    def schedule_restarted(self, vertices: Iterable[ExecutionVertex]) -> None:
        """These subtasks have new attempts."""
        self._schedule_bulks(self._plan.strategy.on_restart(vertices))

    def _schedule_bulks(self, bulks: Iterable[list[ExecutionVertex]]) -> None:
        for vertices in bulks:
            for vertex in vertices:
                self._plan.graph.move(vertex.execution, _S.SCHEDULED)
            self._slots.place_bulk(vertices)

    def deploy_complete(self) -> None:
        """Deploys the bulks whose slots are all there."""
        ready = [
            execution
            for execution in self._slots.take_complete_bulks()
            if execution.state is _S.SCHEDULED
        ]
        for execution in ready:
            if execution.slot is None:
                raise EngineError(f"{execution} is scheduled and has no slot")
            execution.location = execution.slot.location
            self._plan.graph.move(execution, _S.DEPLOYING)
        self._commands += deploy_commands(ready, self._plan.job_graph, self._plan.states)

    def advance(self, execution: Execution, state: ExecutionState) -> None:
        """The attempt reports a state of its way to the end; consumers that become schedulable by
        it are scheduled."""
        consumable = self._plan.graph.move(execution, state)
        if consumable and execution.vertex.failover is None and self._job.is_running:
            self._schedule_bulks(self._plan.strategy.on_consumable(consumable))

    def finish(self, execution: Execution) -> None:
        if execution.state is _S.INITIALIZING:  # its RUNNING report came late or never
            self.advance(execution, _S.RUNNING)
        self.advance(execution, _S.FINISHED)
        self._leave(execution)
        self.release_results(
            producer.execution
            for group in execution.vertex.input_groups
            if group.is_blocking and not group.unconsumed
            for producer in group.producer_vertices()
            if not any(group.unconsumed for group in producer.output_groups)
        )

    # -- to an end ---------------------------------------------------------------------------------

    def cancel(self, execution: Execution) -> None:
        if execution.is_terminal or execution.state is _S.CANCELING:
            return
        if execution.location is None:  # no task to cancel yet
            self.end(execution, _S.CANCELED)
        else:
            self._plan.graph.move(execution, _S.CANCELING)
            self._commands.append(CancelTask(execution.location, execution.attempt_id))

    def end(self, execution: Execution, state: ExecutionState) -> None:
        """The attempt is CANCELED or FAILED."""
        self._plan.graph.move(execution, state)
        self._leave(execution)

    def _leave(self, execution: Execution) -> None:
        self._slots.leave_slot(execution)
        failover = execution.vertex.failover
        if failover is not None:
            failover.running -= 1

    # -- blocking results --------------------------------------------------------------------------

    def results_lost(self, event: ResultsLost) -> None:
        self.lose_results_on(event.resource_id)

    def lose_results_on(self, resource_id: ResourceId) -> None:
        """A TaskExecutor is gone, and with it the blocking results of what has finished there."""
        for result in self._plan.graph.results:
            if result.is_blocking:
                for vertex in result.producer.vertices:
                    location = vertex.execution.location
                    if (
                        location is not None
                        and location.resource_id == resource_id
                        and vertex.execution.state is _S.FINISHED
                    ):
                        vertex.execution.result_lost = True

    def release_results(self, executions: Iterable[Execution]) -> None:
        """These results have been read by everyone, or are produced anew. If they are needed once
        more, their producers run again."""
        released: dict[TaskManagerLocation, list[ExecutionAttemptId]] = {}
        for execution in executions:
            if execution.keeps_results and execution.location is not None:
                execution.result_lost = True
                released.setdefault(execution.location, []).append(execution.attempt_id)
        self._commands += [
            ReleaseResults(location, tuple(attempts)) for location, attempts in released.items()
        ]
