"""The tests of sinks that run whole jobs, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.testing.connectors.connector_tests import (
    check,
    in_time,
    is_one_sentence,
    pass_a_moment,
)
from flinkpy.testing.connectors.embedded_jobs import (
    NOTICED_S,
    RESTARTING,
    SMALL_BATCHES,
    WITH_CHECKPOINTS,
    EmbeddedJobs,
    RunningJob,
)
from flinkpy.testing.connectors.paced_source import PacedSource
from flinkpy.testing.connectors.sink_author import SinkSteps


class SinkJobs(EmbeddedJobs, SinkSteps):
    """Whole jobs that write to the sink."""

    def paced(
        self, parallelism: int = 1, pace: int = 12, more: int = 0, **failing: Any
    ) -> PacedSource:
        """The records, and some more, a few for each checkpoint, in a split for each subtask."""
        return PacedSource(
            [(self.record(number), number) for number in range(self.records + more)],
            pace,
            parallelism,
            **failing,
        )

    def write_job(
        self, source: PacedSource, options: Mapping[str, Any] = WITH_CHECKPOINTS
    ) -> RunningJob:
        """One that writes what the source gives."""
        return self.submit(
            lambda env: env.from_source(source, source_name="numbers").sink_to(self.sink()),
            {**SMALL_BATCHES, **options},
            source.splits,
        )

    @in_time
    def test_a_job_writes_all_of_it(self) -> None:
        """With checkpoints; and without, where the last records are written out at the end and not
        before."""
        for parallelism in (1, 2):
            self.write_job(self.paced(parallelism)).finish()
            self.sees(self.records, f"a job of parallelism {parallelism}")
            self.open_anew()
            self.write_job(self.paced(parallelism, self.records + 1, more=1), {}).finish()
            self.sees(self.records + 1, f"a job of parallelism {parallelism} without checkpoints")
            self.open_anew()

    @in_time
    def test_a_job_that_fails_writes_on_from_its_checkpoint(self) -> None:
        for parallelism in (1, 2):
            source = self.paced(
                parallelism, fail_behind=self.records // 2, in_checkpoint=parallelism == 1
            )
            self.write_job(source, RESTARTING).finish()
            check(source.has_failed, "the job was to fail, and did not")
            self.sees(self.records, "a job that failed once")
            self.open_anew()

    @in_time
    def test_a_failure_of_the_outside_system_is_one_sentence(self) -> None:
        self.fail()
        error = self.write_job(
            self.paced(), {**WITH_CHECKPOINTS, "restart-strategy.type": "none"}
        ).failure()
        is_one_sentence(error, self.says)
        self.mend()

    @in_time
    def test_a_job_goes_on_when_the_outside_system_works_again(self) -> None:
        source = self.paced(pace=2)
        job = self.write_job(source, RESTARTING)
        deadline = SYSTEM_CLOCK.monotonic() + self.patience_s
        while not self.seen() and SYSTEM_CLOCK.monotonic() < deadline:
            pass_a_moment()
        before = source.readers
        self.fail()
        # it has failed, and has failed again
        source.wait_until(lambda: source.readers >= before + 2, NOTICED_S)
        self.mend()
        job.finish()
        self.sees(self.records, "the outside system failed for a while")

    @in_time
    def test_a_job_is_cancelled_while_the_outside_system_is_silent(self) -> None:
        self.pause()
        self._closing.append(self.go_on)
        source = self.paced()
        job = self.write_job(source)
        source.wait_until(lambda: source.given > 0, self.prompt_s)
        pass_a_moment(0.3)  # until a writer waits
        job.cancel(self.prompt_s)

    @in_time
    def test_throughput(self) -> None:
        """Prints how many records are written in a second, and compares that with the floor that
        the author sets."""
        began = SYSTEM_CLOCK.monotonic()
        self.submit(
            lambda env: env.from_collection(
                [self.record(number) for number in range(self.many)]
            ).sink_to(self.sink()),
            {},
        ).finish()
        rate = self.many / (SYSTEM_CLOCK.monotonic() - began)
        self.sees(self.many, "a job without checkpoints")
        self.report(f"{type(self).__name__}: {rate:,.0f} records in a second")
        self.is_fast_enough(rate)
