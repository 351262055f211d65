"""One seed from beginning to end: builds the cluster, runs the jobs and the faults, waits until all is quiet, and
checks."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flinkpy.actors.gateways import DispatcherGateway, JobResult
from flinkpy.core.errors import EngineError, RpcError
from flinkpy.core.futures import Future
from flinkpy.core.ids import JobId, ResourceId
from flinkpy.core.lifecycles import JOB, JobState
from flinkpy.core.options.checkpointing import takes_checkpoints
from flinkpy.testing.simulation.cluster import CLIENT, DISPATCHER, RESOURCE_MANAGER, SimulatedCluster
from flinkpy.testing.simulation.cluster_invariants import Invariants, check_end, stale_requests
from flinkpy.testing.simulation.scenario import FAULTS_END_S, RPC, Crash, ManagerCrash, Partition, Scenario
from flinkpy.testing.simulation.simulated_jobs import SimulatedJob

PATIENCE_S = 600.0  # of virtual time, for the last job to end
SETTLED_S = 15.0  # after the last fault: lost messages have been repeated by then
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
    late_files: int  # that a task has written after its job's end, and nobody deletes


class SimulationFailure(EngineError):
    """A run went wrong: the message says what, and how to repeat the run."""


class SimulatedClient:
    """One user: submits a job, perhaps cancels it, waits for its result, and repeats every call until it is
    answered."""

    def __init__(self, cluster: SimulatedCluster, job: SimulatedJob) -> None:
        self._cluster, self._job = cluster, job
        self.result: JobResult | None = None
        self._after(job.submit_at_s, self._submit)

    @property
    def job_id(self) -> JobId:
        return self._job.graph.job_id

    def _after(self, delay_s: float, action: Callable[[], None]) -> None:
        self._cluster.client_service.schedule(delay_s, action)

    def _call(self, ask: Callable[[DispatcherGateway], Future[Any]], then: Callable[[Any], None]) -> None:
        """Repeats the call until there is an answer."""
        def failed(error: BaseException) -> None:
            if not isinstance(error, RpcError):
                raise error
            self._after(0.5, lambda: self._call(ask, then))

        def answered(done: Future[Any]) -> None:
            failed(done.error) if done.error is not None else then(done.result(timeout=0))

        def connected(done: Future[DispatcherGateway]) -> None:
            failed(done.error) if done.error is not None else ask(done.result(timeout=0)).add_done_callback(answered)

        self._cluster.client().add_done_callback(connected)

    def _submit(self) -> None:
        self._call(lambda dispatcher: dispatcher.submit_job(self._job.graph), self._submitted)

    def _submitted(self, job_id: JobId) -> None:
        if self._job.cancel_after_s is not None:
            self._after(self._job.cancel_after_s, self._cancel)
        self._wait()

    def _cancel(self) -> None:
        self._call(lambda dispatcher: dispatcher.cancel_job(self.job_id), lambda answer: None)

    def _wait(self) -> None:
        self._call(lambda dispatcher: dispatcher.request_job_result(self.job_id, 1.0), self._told)

    def _told(self, result: JobResult | None) -> None:
        if result is None:
            self._wait()
        else:
            self.result = result


class SimulationRun:
    """A scenario that is being played."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.cluster = SimulatedCluster(
            scenario.seed, scenario.faults, rpc_config=RPC, slot_config=scenario.slots, max_slots=scenario.max_slots, failing=scenario.failing,
            told_late_s=TOLD_LATE_S, failing_files=scenario.failing_files)
        self.network = self.cluster.network
        self.network.after_event = Invariants(self.cluster)
        self._workers = 0
        for _ in range(scenario.static_workers):
            self._start_static_worker()
        self.clients = [SimulatedClient(self.cluster, job) for job in scenario.jobs]
        for crash in scenario.crashes:
            self.network.schedule(crash.at_s, lambda crash=crash: self._crash(crash), "crash")  # type: ignore[misc]
        for partition in scenario.partitions:
            self.network.schedule(partition.at_s, lambda partition=partition: self._cut(partition), "partition")  # type: ignore[misc]
        for manager in scenario.manager_crashes:
            self.network.schedule(manager.at_s, lambda manager=manager: self._crash_manager(manager), "crash")  # type: ignore[misc]
        self.network.schedule(FAULTS_END_S, self._faults_end, "the faults end")
        for looks in (1, 2):
            self.network.schedule(FAULTS_END_S + looks * SETTLED_S, self._look_for_calm, "all has settled")

    # -- faults ------------------------------------------------------------------------------------------------------------

    def _start_static_worker(self) -> None:
        self._workers += 1
        self.cluster.start_worker(ResourceId(f"static-{self._workers}"), self.scenario.slots.slots_per_executor)

    def _crash(self, crash: Crash) -> None:
        names = list(self.cluster.workers)
        if not names:
            return
        name = names[crash.victim % len(names)]
        worker = self.cluster.crash_worker(name)
        if worker.on_failure is None:
            self.network.schedule(crash.restart_s, self._start_static_worker, "a worker is started anew")
        elif crash.noticed:
            worker.on_failure("the simulated process died")

    def _cut(self, partition: Partition) -> None:
        job_masters = [name for name in self.network.processes if name.startswith("jobmaster-")]
        masters = [DISPATCHER, RESOURCE_MANAGER, *job_masters]
        names = [CLIENT, *self.cluster.workers, RESOURCE_MANAGER, *job_masters]
        name = names[partition.victim % len(names)]
        others = [master for master in masters if master != name]
        if partition.to_master:
            self.network.partition(name, others, both_ways=False)
        if partition.from_master:
            self.network.partition(others, name, both_ways=False)
        self.network.schedule(partition.lasts_s, lambda: self.network.heal(name, others), f"{name} is back")

    def _crash_manager(self, crash: ManagerCrash) -> None:
        if RESOURCE_MANAGER in self.network.processes:
            self.cluster.crash_resource_manager(crash.back_after_s, crash.noticed)

    def _faults_end(self) -> None:
        self.network.heal()
        self.cluster.driver.failing = 0.0
        self.cluster.files.faults_last = self.cluster.oracle.faults_last = False

    def _look_for_calm(self) -> None:
        """A request that was served or given up a moment ago is not stale: it is gone when looked for again."""
        stale = stale_requests(self.cluster)

        def look_again() -> None:
            still = stale & stale_requests(self.cluster)
            if still:
                raise EngineError(f"the ResourceManager believes these to be waited for: {still}")

        if stale:
            self.network.schedule(AGAIN_S, look_again, "all has settled")

    # -- the run -----------------------------------------------------------------------------------------------------------

    def run(self) -> SeedReport:
        """Plays the scenario to its end. Raises EngineError when something is wrong."""
        ended = self.network.run_until(lambda: all(client.result is not None for client in self.clients), PATIENCE_S)
        if not ended:
            open_jobs = [client.job_id for client in self.clients if client.result is None]
            raise EngineError(f"jobs without an end: {[(job_id, self._story_of(job_id)) for job_id in open_jobs]}")
        self.network.run_for(max(0.0, FAULTS_END_S - self.network.now) + CALM_S + self.scenario.slots.idle_timeout.total_seconds())
        self._check_results()
        check_end(self.cluster)
        states = {client.job_id: client.result.state for client in self.clients if client.result is not None}
        return SeedReport(
            self.scenario.seed, self.network.trace_digest(), self.network.events, self.network.now,
            self.cluster.driver.started, states,
            self.cluster.oracle.completed, self.cluster.oracle.restored, self.cluster.oracle.late_files)

    def _story_of(self, job_id: JobId) -> str:
        master = self.cluster.job_masters.get(job_id)
        return repr(master.scheduler.details()) + repr(master.slots.pool) if master is not None else "never started"

    def _check_results(self) -> None:
        for client, job in zip(self.clients, self.scenario.jobs):
            result = client.result
            assert result is not None
            if not JOB.is_terminal(result.state):
                raise EngineError(f"the result of job {client.job_id} says {result.state}")
            if isinstance(result.error, EngineError):
                raise EngineError(f"job {client.job_id} met a bug: {result.error!r}") from result.error
            if (result.state is JobState.FAILED) != (result.error is not None):
                raise EngineError(f"job {client.job_id} is {result.state.name} with error {result.error!r}")
            if result.state is JobState.CANCELED and job.cancel_after_s is None:
                raise EngineError(f"job {client.job_id} was cancelled, and nobody had asked for it")
            if result.state is JobState.FINISHED:
                _check_finished(job, result)
            if takes_checkpoints(job.graph.configuration):
                self.cluster.oracle.check_end(job.graph, result.state)


def _check_finished(job: SimulatedJob, result: JobResult) -> None:
    """Checks that every subtask has finished, and that attempts that count have read every split once."""
    subtasks = sum(vertex.parallelism for vertex in job.graph.vertices)
    if result.accumulators.get("tasks") != subtasks:
        raise EngineError(f"job {result.job_id} has {subtasks} subtasks, {result.accumulators.get('tasks')} told of their end")
    if takes_checkpoints(job.graph.configuration):
        return  # what its sinks have committed is looked at instead
    expected = [f"split-{number}" for vertex in job.graph.vertices for _, source in vertex.sources for number in range(pickle.loads(source).splits)]
    read = result.accumulators.get("splits", [])
    if sorted(expected) != sorted(read):
        raise EngineError(f"job {result.job_id} has splits {sorted(expected)}, its tasks have read {sorted(read)}")


def run_seed(seed: int, trace: Callable[[float, str], None] | None = None) -> SeedReport:
    """Plays one seed. Raises SimulationFailure when an invariant breaks, a job does not end, or something leaks."""
    run = SimulationRun(Scenario.of(seed))
    if trace is not None:
        _trace(run, trace)
    try:
        return run.run()
    except Exception as error:
        raise SimulationFailure(f"seed {seed}: {error}\nsee it again: python -m flinkpy.testing.simulation --seed {seed} --trace") from error


def _trace(run: SimulationRun, trace: Callable[[float, str], None]) -> None:
    check = run.network.after_event

    def traced() -> None:
        trace(*run.network.last_event)
        if check is not None:
            check()

    run.network.after_event = traced
