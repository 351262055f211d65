"""Jobs of the kit: they run in this process, and are waited for with patience."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from flinkpy.common.job_client import JobClient
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.core.errors import FlinkpyError, RpcTimeoutError
from flinkpy.datastream import StreamExecutionEnvironment
from flinkpy.testing.connectors.connector_tests import check
from flinkpy.testing.environment import embedded_environment

WITH_CHECKPOINTS = {"execution.checkpointing.interval": "10 ms"}
RESTARTING = {
    **WITH_CHECKPOINTS,
    "restart-strategy.type": "fixed-delay",
    "restart-strategy.fixed-delay.attempts": 1000,
    "restart-strategy.fixed-delay.delay": "20 ms",
}
SMALL_BATCHES = {"taskmanager.network.batch.max-records": 5}
NOTICED_S = 1.0  # how long the outside system fails where no job restarts because of it


class RunningJob:
    """A job that was submitted."""

    def __init__(self, client: JobClient, patience_s: float) -> None:
        self._client, self._patience_s = client, patience_s

    def finish(self) -> None:
        """Waits for its end, and raises its failure."""
        try:
            self._client.get_job_execution_result().result(self._patience_s)
        except RpcTimeoutError:
            self._client.cancel()
            raise AssertionError(f"the job has not ended after {self._patience_s:g} s") from None

    def failure(self) -> FlinkpyError:
        """Waits until it fails."""
        try:
            self.finish()
        except FlinkpyError as error:
            return error
        raise AssertionError("the job ended well, although the outside system failed")

    def cancel(self, prompt_s: float) -> None:
        """Cancels it, and sees that it has ended soon."""
        began = SYSTEM_CLOCK.monotonic()
        self._client.cancel().result(self._patience_s)
        self.stop()
        took = SYSTEM_CLOCK.monotonic() - began
        check(
            took < prompt_s,
            (
                f"the job had ended {took:.1f} s after it was cancelled: something waits, and is "
                "not interrupted"
            ),
        )

    def stop(self) -> None:
        """Cancels it if it runs, and waits for its end, however that is."""
        self._client.cancel()
        try:
            self._client.get_job_execution_result().result(self._patience_s)
        except FlinkpyError:
            pass


class EmbeddedJobs:
    """Submits programs; the jobs that a test leaves are stopped behind it."""

    patience_s: float
    _closing: list[Callable[[], object]]

    def submit(
        self,
        build: Callable[[StreamExecutionEnvironment], object],
        options: Mapping[str, Any],
        parallelism: int = 1,
    ) -> RunningJob:
        """Runs what ``build`` makes of an environment."""
        env = embedded_environment(options, parallelism=parallelism)
        build(env)
        job = RunningJob(env.execute_async("connector kit"), self.patience_s)
        self._closing.append(job.stop)
        return job
