"""One seed from beginning to end: builds the cluster, runs the jobs and the faults, waits until all
is quiet, and checks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from flinkpy.actors.gateways import DispatcherGateway, JobResult
from flinkpy.core.errors import EngineError, FlinkpyError, RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId, ResourceId
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.testing.simulation.checkpointed_jobs import SavepointUser, going_on
from flinkpy.testing.simulation.cluster import (
    CLIENT,
    DISPATCHER,
    RESOURCE_MANAGER,
    SimulatedCluster,
    WatchedNetwork,
)
from flinkpy.testing.simulation.cluster_invariants import Invariants, check_end, stale_requests
from flinkpy.testing.simulation.scenario import (
    FAULTS_END_S,
    RPC,
    Crash,
    ManagerCrash,
    MastersCrash,
    Partition,
    Scenario,
)
from flinkpy.testing.simulation.simulated_jobs import SavepointAt, SimulatedJob

T = TypeVar("T")

# of virtual time, for the last job to end: also one that restarts 13 times for a slot that never
# comes
PATIENCE_S = 700.0
SETTLED_S = 15.0  # after the last fault: lost messages have been repeated by then
ASKS_AGAIN_S = 0.5  # after a refusal
AGAIN_S = 2.0  # a look at what may be on its way
TOLD_LATE_S = 1.0  # how late the Dispatcher may hear that a job has ended
CALM_S = 40.0  # of virtual time after it, for the last heartbeats and timeouts


@dataclass(frozen=True)
class SeedReport:
    """How a run went. Equal seeds give equal reports."""

    seed: int
    digest: str
    events: int
    virtual_s: float
    workers_started: int
    states: dict[JobId, JobState]
    checkpoints: int  # that were complete
    restored: int  # attempts that started from one
    terms: int  # of masters that took over from others
    late_files: int  # that a task has written after its job's end, and nobody deletes
    savepoints: int  # that users were told of
    stopped: int  # jobs that were stopped with one


class SimulationFailure(EngineError):
    """A run went wrong: the message says what, and how to repeat the run."""


class SimulatedClient:
    """One user: submits a job, perhaps cancels it, or asks for savepoints, waits for its result,
    and repeats every call until it is answered. ``on_stopped`` is told of the savepoint that it was
    stopped with, and before it has a result."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        job: SimulatedJob,
        on_stopped: Callable[[SimulatedJob, str], None] = lambda job, savepoint: None,
    ) -> None:
        self._cluster = cluster
        self.job = job
        self._on_stopped = on_stopped
        self.result: JobResult | None = None
        self.savepoints: list[str] = []  # that it was told of
        self._unanswered = len(job.savepoints)
        self._stopped_with: str | None = None
        self._after(job.submit_at_s, self._submit)

    @property
    def job_id(self) -> JobId:
        return self.job.graph.job_id

    def _after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._cluster.client_service.schedule(delay_s, action)

    def _call(
        self,
        ask: Callable[[DispatcherGateway], Future[Any]],
        then: Callable[[Any], None],
        refused: Callable[[FlinkpyError], None] | None = None,
    ) -> None:
        """Repeats the call until there is an answer."""

        def failed(error: BaseException) -> None:
            if isinstance(error, RpcError):
                self._after(0.5, lambda: self._call(ask, then, refused))
            elif (
                isinstance(error, EngineError)
                or refused is None
                or not isinstance(error, FlinkpyError)
            ):
                raise error
            else:
                refused(error)

        def answered(done: Future[Any]) -> None:
            failed(done.error) if done.error is not None else then(done.result(timeout=0))

        def connected(done: Future[DispatcherGateway]) -> None:
            failed(done.error) if done.error is not None else ask(
                done.result(timeout=0)
            ).add_done_callback(answered)

        self._cluster.client().add_done_callback(connected)

    def _submit(self) -> None:
        self._call(lambda dispatcher: dispatcher.submit_job(self.job.graph), self._submitted)

    def _submitted(self, job_id: JobId) -> None:
        if self.job.cancel_after_s is not None:
            self._after(self.job.cancel_after_s, self._cancel)
        for asked in self.job.savepoints:
            self._ask_for(asked)
        self._wait()

    def _ask_for(self, asked: SavepointAt) -> None:
        SavepointUser(
            self.job, asked, self._call, self._after, self._has_savepoint, self._refused
        ).start()

    def _cancel(self) -> None:
        self._call(lambda dispatcher: dispatcher.cancel_job(self.job_id), lambda answer: None)

    def _wait(self) -> None:
        self._call(lambda dispatcher: dispatcher.request_job_result(self.job_id, 1.0), self._told)

    def _told(self, result: JobResult | None) -> None:
        if result is None or self._unanswered:
            self._after(0.1, self._wait)
            return
        if self._stopped_with is not None:
            if result.state is not JobState.FINISHED:
                raise EngineError(
                    f"job {self.job_id} was stopped with {self._stopped_with}, and is "
                    f"{result.state.name}"
                )
            self._on_stopped(self.job, self._stopped_with)
        self.result = result

    def _has_savepoint(self, asked: SavepointAt, location: str) -> None:
        self._unanswered -= 1
        if asked.kind.is_savepoint:
            self._cluster.oracle.told_of_savepoint(location)
            self.savepoints.append(location)
        if asked.kind.stops_job:
            self._stopped_with = location
        if asked.cancels_after_s is not None:
            self._after(asked.cancels_after_s, self._cancel)

    def _refused(self, asked: SavepointAt, error: FlinkpyError) -> None:
        self._cluster.oracle.told_of_no_savepoint(str(error))
        if asked.again:
            self._ask_for(
                replace(
                    asked,
                    after_s=ASKS_AGAIN_S,
                    trigger_id=f"{asked.trigger_id}+",
                    again=asked.again - 1,
                )
            )
        else:
            self._unanswered -= 1

    @property
    def was_stopped(self) -> bool:
        return self._stopped_with is not None


class SimulationRun:
    """A scenario that is being played."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.cluster = SimulatedCluster(
            scenario.seed,
            scenario.faults,
            rpc_config=RPC,
            slot_config=scenario.slots,
            max_slots=scenario.max_slots,
            failing=scenario.failing,
            told_late_s=TOLD_LATE_S,
            failing_files=scenario.failing_files,
            masters_come_back=bool(scenario.masters_crashes),
            workers_ask=scenario.workers_ask,
        )
        self.network = self.cluster.network
        self.network.after_event = Invariants(self.cluster)
        self._workers = 0
        for _ in range(scenario.static_workers):
            self._start_static_worker()
        self.clients = [SimulatedClient(self.cluster, job, self._go_on) for job in scenario.jobs]
        for crash in scenario.crashes:
            self.network.schedule(crash.at_s, lambda crash=crash: self._crash(crash), "crash")  # type: ignore[misc]
        for partition in scenario.partitions:
            self.network.schedule(
                partition.at_s,
                lambda partition=partition: self._cut(partition),  # type: ignore[misc]
                "partition",
            )
        for manager in scenario.manager_crashes:
            self.network.schedule(
                manager.at_s,
                lambda manager=manager: self._crash_manager(manager),  # type: ignore[misc]
                "crash",
            )
        for masters in scenario.masters_crashes:
            self.network.schedule(
                masters.at_s,
                lambda masters=masters: self._crash_masters(masters),  # type: ignore[misc]
                "crash",
            )
        self.network.schedule(FAULTS_END_S, self._faults_end, "the faults end")
        for looks in (1, 2):
            self.network.schedule(
                FAULTS_END_S + looks * SETTLED_S, self._look_for_calm, "all has settled"
            )

    def _go_on(self, job: SimulatedJob, savepoint: str) -> None:
        """A job was stopped: another one starts from its savepoint."""
        next_job = going_on(job, savepoint)
        self.cluster.oracle.job_goes_on(job.graph.job_id, next_job.graph.job_id)
        self.clients.append(SimulatedClient(self.cluster, next_job, self._go_on))

    # -- faults ------------------------------------------------------------------------------------

    def _start_static_worker(self) -> None:
        self._workers += 1
        self.cluster.start_worker(
            ResourceId(f"static-{self._workers}"), self.scenario.slots.slots_per_executor
        )

    def _crash(self, crash: Crash) -> None:
        names = list(self.cluster.workers)
        if not names:
            return
        name = names[crash.victim % len(names)]
        worker = self.cluster.crash_worker(name)
        if worker.on_failure is None:
            self.network.schedule(
                crash.restart_s, self._start_static_worker, "a worker is started anew"
            )
        elif crash.noticed:
            worker.on_failure("the simulated process died")

    def _cut(self, partition: Partition) -> None:
        job_masters = [name for name in self.network.processes if name.startswith("jobmaster-")]
        masters = [DISPATCHER, RESOURCE_MANAGER, *job_masters]
        names = [CLIENT, *self.cluster.workers, RESOURCE_MANAGER, *job_masters]
        name = names[partition.victim % len(names)]
        self.cluster.cut_off(name, [master for master in masters if master != name], partition)

    def _crash_manager(self, crash: ManagerCrash) -> None:
        if RESOURCE_MANAGER in self.network.processes:
            self.cluster.crash_resource_manager(crash.back_after_s, crash.noticed)

    def _crash_masters(self, crash: MastersCrash) -> None:
        if DISPATCHER in self.network.processes:
            self.cluster.crash_masters(crash.back_after_s, crash.noticed)

    def _faults_end(self) -> None:
        self.network.heal()
        self.cluster.driver.failing = 0.0
        self.cluster.files.faults_last = self.cluster.oracle.faults_last = False

    def _look_for_calm(self) -> None:
        """A request that was served or given up a moment ago is not stale: it is gone when looked
        for again."""
        stale = stale_requests(self.cluster)

        def look_again() -> None:
            still = stale & stale_requests(self.cluster)
            if still:
                raise EngineError(f"the ResourceManager believes these to be waited for: {still}")

        if stale:
            self.network.schedule(AGAIN_S, look_again, "all has settled")

    # -- the run -----------------------------------------------------------------------------------

    def run(self) -> SeedReport:
        """Plays the scenario to its end. Raises EngineError when something is wrong."""
        ended = self.network.run_until(
            lambda: all(client.result is not None for client in self.clients), PATIENCE_S
        )
        if not ended:
            open_jobs = [client.job_id for client in self.clients if client.result is None]
            raise EngineError(
                f"jobs without an end: {[(job_id, self._story_of(job_id)) for job_id in open_jobs]}"
            )
        self.network.run_for(
            max(0.0, FAULTS_END_S - self.network.now)
            + CALM_S
            + self.scenario.slots.idle_timeout.total_seconds()
        )
        self._check_results()
        check_end(self.cluster)
        states = {
            client.job_id: client.result.state
            for client in self.clients
            if client.result is not None
        }
        return SeedReport(
            self.scenario.seed,
            self.network.trace_digest(),
            self.network.events,
            self.network.now,
            self.cluster.driver.started,
            states,
            self.cluster.oracle.completed,
            self.cluster.oracle.restored,
            self.cluster.terms,
            self.cluster.oracle.late_files,
            len(self.cluster.oracle.savepoints),
            sum(client.was_stopped for client in self.clients),
        )

    def _story_of(self, job_id: JobId) -> str:
        master = self.cluster.job_masters.get(job_id)
        return (
            repr(master.scheduler.details()) + repr(master.slots.pool)
            if master is not None
            else "never started"
        )

    def _check_results(self) -> None:
        self.cluster.oracle.check_savepoints()
        for client in self.clients:
            result, job = client.result, client.job
            assert result is not None
            if not JOB.is_terminal(result.state):
                raise EngineError(f"the result of job {client.job_id} says {result.state}")
            if isinstance(result.error, EngineError):
                raise EngineError(
                    f"job {client.job_id} met a bug: {result.error!r}"
                ) from result.error
            if (result.state is JobState.FAILED) != (result.error is not None):
                raise EngineError(
                    f"job {client.job_id} is {result.state.name} with error {result.error!r}"
                )
            if result.state is JobState.CANCELED and job.cancel_after_s is None:
                raise EngineError(f"job {client.job_id} was cancelled, and nobody had asked for it")
            if result.state is JobState.FINISHED:
                _check_finished(job, result)
            if client.was_stopped:
                continue  # what its sinks have committed is looked at with what the next job's have
            if takes_checkpoints(job.graph.configuration):
                self.cluster.oracle.check_end(job.graph, result.state)


def _check_finished(job: SimulatedJob, result: JobResult) -> None:
    """Checks that every subtask has finished, and that attempts that count have read every split
    once."""
    subtasks = sum(vertex.parallelism for vertex in job.graph.vertices)
    if result.accumulators.get("tasks") != subtasks:
        raise EngineError(
            f"job {result.job_id} has {subtasks} subtasks, {result.accumulators.get('tasks')} "
            "told of their end"
        )
    if takes_checkpoints(job.graph.configuration):
        return  # what its sinks have committed is looked at instead
    expected = [
        f"split-{number}"
        for vertex in job.graph.vertices
        for _, source in vertex.sources
        for number in range(pickle.loads(source).splits)
    ]
    read = result.accumulators.get("splits", [])
    if sorted(expected) != sorted(read):
        raise EngineError(
            f"job {result.job_id} has splits {sorted(expected)}, its tasks have read {sorted(read)}"
        )


def run_seed(seed: int, trace: Callable[[float, str], None] | None = None) -> SeedReport:
    """Plays one seed. Raises SimulationFailure when an invariant breaks, a job does not end, or
    something leaks."""
    run = SimulationRun(Scenario.of(seed))
    return played(run.run, run.network, trace, f"seed {seed}", f"--seed {seed}")


def played(
    run: Callable[[], T],
    network: WatchedNetwork,
    trace: Callable[[float, str], None] | None,
    name: str,
    options: str,
) -> T:
    """What the run gives. Raises SimulationFailure for whatever it raises; ``options`` are those
    with which it is seen again."""
    if trace is not None:
        traced(network, trace)
    try:
        return run()
    except Exception as error:
        raise SimulationFailure(
            f"{name}: {error}\nsee it again: python -m flinkpy.testing.simulation {options} --trace"
        ) from error


def traced(network: WatchedNetwork, trace: Callable[[float, str], None]) -> None:
    """From now on ``trace`` is told of each event, before it is checked."""
    check = network.after_event

    def look() -> None:
        trace(*network.last_event)
        if check is not None:
            check()

    network.after_event = look
