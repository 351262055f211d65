"""The tests of sources that run whole jobs, in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flinkpy.common.watermark_strategy import WatermarkStrategy
from flinkpy.connectors.source_api.source import Boundedness, Source
from flinkpy.core.clock import SYSTEM_CLOCK
from flinkpy.testing.connectors.connector_tests import (
    check,
    each_once,
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
from flinkpy.testing.connectors.kept_sink import KeptSink
from flinkpy.testing.connectors.source_author import SourceSteps


class SourceJobs(EmbeddedJobs, SourceSteps):
    """Whole jobs over the source, whose results the kit keeps."""

    def run_job(
        self,
        source: Source[Any],
        kept: KeptSink,
        options: Mapping[str, Any] = WITH_CHECKPOINTS,
        parallelism: int = 1,
    ) -> RunningJob:
        return self.submit(
            lambda env: env.from_source(
                source, WatermarkStrategy.no_watermarks(), "source under test"
            ).sink_to(kept),
            {**SMALL_BATCHES, **options},
            parallelism,
        )

    def shown(self, kept: KeptSink) -> list[int]:
        return [self.number_of(value) for value in kept.visible]

    def await_all(self, job: RunningJob, source: Source[Any], kept: KeptSink, when: str) -> None:
        """Every record is seen once; a job without end is cancelled then."""
        if source.boundedness is Boundedness.BOUNDED:
            job.finish()
            each_once(self.shown(kept), range(self.laid), when)
            return
        kept.wait_until(lambda: len(self._laid_of(kept)) >= self.laid, self.patience_s)
        each_once(self._laid_of(kept), range(self.laid), when)
        job.cancel(self.prompt_s)

    def _laid_of(self, kept: KeptSink) -> list[int]:
        return [number for number in self.shown(kept) if number < self.laid]

    @in_time
    def test_a_job_reads_all_of_it(self) -> None:
        self.lay(self.records)
        for make in self.kinds():
            for parallelism in (1, 2):
                source, kept = make(), KeptSink()
                self.await_all(
                    self.run_job(source, kept, parallelism=parallelism),
                    source,
                    kept,
                    f"a job of parallelism {parallelism}",
                )
                self.lay_anew()

    @in_time
    def test_a_job_that_fails_reads_on_from_its_checkpoint(self) -> None:
        """It takes a few records for each checkpoint, and fails behind some that no checkpoint
        has."""
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            source = make()
            kept = KeptSink(pace=max(6, self.records // 6), fail_at=self.records // 2)
            self.await_all(
                self.run_job(source, kept, RESTARTING), source, kept, "a job that failed once"
            )
            check(kept.has_failed, "the job was to fail, and did not")

    @in_time
    def test_a_job_that_fails_at_a_new_record_reads_on_from_its_checkpoint(self) -> None:
        """A checkpoint has all that was there at first; the job fails at the first record that is
        written later."""
        self.need_replay()
        source, kept = self.unbounded_source(), KeptSink()
        self.lay(self.records // 2)
        job = self.run_job(source, kept, RESTARTING)
        self._await_first(kept)
        kept.fail_next()
        self._lay_the_rest()
        check(
            kept.wait_until(lambda: kept.has_failed, self.patience_s),
            "the job was to fail, and did not",
        )
        self.await_all(job, source, kept, "a job that failed at a new record")

    def _await_first(self, kept: KeptSink) -> None:
        kept.wait_until(lambda: len(self._laid_of(kept)) >= self.laid, self.patience_s)
        each_once(self._laid_of(kept), range(self.laid), "what was there at first")

    def _lay_the_rest(self) -> None:
        self.fill(self.splits - 1, range(self.laid, self.records))
        self.laid = self.records

    @in_time
    def test_a_slow_consumer_loses_nothing(self) -> None:
        """One that stands still at first, and then takes a few records for each checkpoint."""
        self.lay(self.records)
        for make in self.kinds():
            source, kept = make(), KeptSink(pace=max(6, self.records // 6))
            kept.stall()
            job = self.run_job(source, kept)
            # called at once
            kept.wait_until(lambda: kept.writers > 0, self.patience_s)  # noqa: B023
            pass_a_moment(0.2)  # in which the source may read ahead
            kept.go_on()
            self.await_all(job, source, kept, "a slow consumer")
            self.lay_anew()

    @in_time
    def test_a_job_is_cancelled_promptly(self) -> None:
        """Also while a read waits: behind all that there is."""
        self.lay(self.records)
        source, kept = self.unbounded_source(), KeptSink()
        job = self.run_job(source, kept)
        kept.wait_until(lambda: len(self._laid_of(kept)) >= self.laid, self.patience_s)
        job.cancel(self.prompt_s)

    @in_time
    def test_a_job_is_cancelled_while_the_outside_system_is_silent(self) -> None:
        self.lay(self.records)
        for make in self.kinds():
            self.pause()
            self._closing.append(self.go_on)
            kept = KeptSink()
            job = self.run_job(make(), kept)
            # called at once
            kept.wait_until(lambda: kept.writers > 0, self.patience_s)  # noqa: B023
            pass_a_moment(0.5)  # until it is reading
            job.cancel(self.prompt_s)
            self.go_on()
            self.lay_anew()

    @in_time
    def test_a_failure_of_the_outside_system_is_one_sentence(self) -> None:
        self.lay(self.records)
        for make in self.kinds():
            source, kept = make(), KeptSink()
            self.fail()
            error = self.run_job(
                source, kept, {**WITH_CHECKPOINTS, "restart-strategy.type": "none"}
            ).failure()
            is_one_sentence(error, self.says)
            self.mend()

    @in_time
    def test_a_job_goes_on_when_the_outside_system_works_again(self) -> None:
        self.need_replay()
        source, kept = self.unbounded_source(), KeptSink()
        self.lay(self.records // 2)
        job = self.run_job(source, kept, RESTARTING)
        self._await_first(kept)
        self.fail()
        kept.wait_until(lambda: kept.writers > 3, NOTICED_S)
        self.mend()
        self._lay_the_rest()
        self.await_all(job, source, kept, "the outside system failed for a while")

    @in_time
    def test_a_job_waits_for_an_outside_system_that_fails_at_first(self) -> None:
        self.need_replay()
        self.lay(self.records)
        for make in self.kinds():
            source, kept = make(), KeptSink(pace=max(6, self.records // 6))
            self.fail()
            job = self.run_job(source, kept, RESTARTING)
            # called at once
            kept.wait_until(lambda: kept.writers > 0, self.patience_s)  # noqa: B023
            kept.wait_until(lambda: kept.writers > 3, NOTICED_S)  # noqa: B023
            self.mend()
            self.await_all(job, source, kept, "the outside system failed at first")

    @in_time
    def test_throughput(self) -> None:
        """Prints how many records are read in a second, and compares that with the floor that the
        author sets."""
        self.lay(self.many)
        for make in self.kinds():
            source, kept = make(), KeptSink()
            began = SYSTEM_CLOCK.monotonic()
            # called at once
            job = self.submit(lambda env: env.from_source(source).sink_to(kept), {})  # noqa: B023
            if source.boundedness is Boundedness.BOUNDED:
                job.finish()
            else:
                # called at once
                kept.wait_until(lambda: kept.given >= self.laid, 4 * self.patience_s)  # noqa: B023
                job.stop()
            rate = kept.given / (SYSTEM_CLOCK.monotonic() - began)
            check(kept.given >= self.laid, f"{kept.given} of {self.laid} records came")
            self.report(f"{type(self).__name__}: {source!r:.60}: {rate:,.0f} records in a second")
            self.is_fast_enough(rate)
            self.lay_anew()
