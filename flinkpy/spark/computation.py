"""Spark's computation of a DataFrame's partitions, seen from the program: which partitions are
ready, and what failed.

Spark's driver runs in this program and knows which executor keeps each partition; the computation
asks it again and again."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any

from flinkpy.core.errors import ResourceUnavailableError
from flinkpy.spark.partitions import Partitions, own_namespace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# how often to start it at most: partitions may be lost with an executor before they are fetched
BEGINNINGS = 3
_OUT_OF_MEMORY = "OutOfMemoryError"


class Computation:
    """The Arrow batches of a DataFrame.

    A frame with a shuffle is planned as it runs: then Spark computes all stages but the last before
    the number of partitions is known."""

    def __init__(self, frame: DataFrame) -> None:
        from pyspark.storagelevel import StorageLevel

        context = frame.sparkSession.sparkContext
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code uses deprecated parts of Spark
            # the heap is for Spark's computation
            level = context._getJavaStorageLevel(StorageLevel.DISK_ONLY)
        jvm: Any = context._jvm
        writer = jvm.org.apache.spark.sql.raydp.ObjectStoreWriter
        self._jvm, self._context = jvm, context._jsc.sc()
        # Spark forgets it once nobody refers to it
        self._rdd = frame._jdf.toArrowBatchRdd().persist(level)
        self.partitions = Partitions(
            self._rdd.id(),
            self._rdd.getNumPartitions(),
            writer.toArrowSchema(frame._jdf).toJson(),
            writer.driverAgentUrl(),
            own_namespace(),
        )
        self._block = re.compile(rf"rdd_{self.partitions.rdd}_(\d+)\b")
        self._known: set[int] = set()
        self._actors: dict[str, str] = {}  # Spark's id of an executor -> the id it was started with
        self._beginnings = 0

    def begin(self) -> None:
        """Starts the computation in Spark."""
        self._beginnings += 1
        self._job = self._rdd.toJavaRDD().countAsync()

    def found(self) -> dict[int, str]:
        """Returns the partitions computed since the last call, with the place of each. When all
        have been found, Spark may still be at work. Raises Spark's error if it failed."""
        is_over = self._job.isDone()  # asked first: then the partitions found now are all
        found: dict[int, str] = {}
        for status in self._context.env().blockManager().master().getStorageStatus():
            here = {
                int(number)
                for number in self._block.findall(status.rddBlocks().keys().mkString(" "))
            } - self._known
            if here:
                place = self._place(status.blockManagerId().executorId())
                found.update(dict.fromkeys(sorted(here), place))
                self._known |= here
        if is_over and len(self._known) < self.partitions.count:
            self._job.get()  # raises where it failed
            if self._beginnings >= BEGINNINGS:
                raise ResourceUnavailableError(
                    "Spark computed partitions and lost them: its executors die, or their "
                    "disk (spark.local.dir) is full"
                )
            self.begin()
        return found

    def _place(self, executor: str) -> str:
        if executor not in self._actors:
            master = self._jvm.io.ray.api.Ray.getActor("RAY_APP_MASTER").get()
            restarted = (
                self._jvm.org.apache.spark.deploy.raydp.RayAppMasterUtils.getRestartedExecutors(
                    master
                )
            )
            self._actors[executor] = restarted.get(executor) or executor
        return self._actors[executor]

    def cancel(self) -> None:
        """Stops the computation in Spark."""
        self._job.cancel(True)

    def release(self) -> None:
        """Makes Spark drop the partitions it keeps."""
        self._rdd.unpersist(False)

    def silence(self) -> None:
        """Silences Spark on the terminal."""
        self._context.setLogLevel("OFF")

    def advice(self, error: BaseException) -> str:
        """Returns a text for the user, from Spark's or Ray's error: why the partitions are not
        available, and what to do."""
        if _OUT_OF_MEMORY in str(error):
            return (
                "Spark's executor has too little memory to hand over a partition: give the "
                "DataFrame more partitions, df.repartition(n), or the "
                "executors more memory, spark_session(memory=)"
            )
        if self._is_stopped():
            return (
                "Spark was stopped before it had handed over the DataFrame: leave it running "
                "until the job has ended, or end it with "
                "flinkpy.spark.stop_spark(), which waits for as long as it must"
            )
        reason = reason_of(str(error)) or type(error).__name__
        return (
            f"the DataFrame could not be handed over: {reason}; is it right by itself, "
            "df.show(), and are Spark and Ray still running?"
        )

    def _is_stopped(self) -> bool:
        try:
            return bool(self._context.isStopped())
        except Exception:  # no Java any more
            return True


def reason_of(text: str) -> str:
    """The line of a Python or Java traceback that has the error message.

    >>> python = "Traceback (most recent call last):\\n  File x\\nValueError: no\\n"
    >>> reason_of(f"SparkException: PythonException: {python}\\n\\tat a.b")
    'ValueError: no'
    >>> cause = "Caused by: java.io.IOException: no space\\n\\tat c.d\\n"
    >>> reason_of(f"An error occurred in o1.get.\\n: java.util.E: x\\n\\tat a.b\\n{cause}")
    'java.io.IOException: no space'
    """
    _, python, rest = text.rpartition("Traceback (most recent call last):")
    if python:
        return next((line.strip() for line in rest.splitlines() if line[:1].strip()), "")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [
        line.removeprefix("Caused by:").strip() for line in lines if line.startswith("Caused by:")
    ]
    return causes[-1] if causes else lines[0] if lines else ""
