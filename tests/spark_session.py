"""One Spark session on a private Ray cluster for all tests that need one: starting both takes ten
seconds and more."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

OBJECT_STORE_BYTES = 320 << 20  # small, so that large hand-overs must spill
NEEDS = "needs the extra: pip install 'flinkpy[spark]', or make test-spark"


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """One executor of one core beside a stream of two slots. Skips where the extra is not
    installed."""
    pytest.importorskip("pyspark", reason=NEEDS)
    pytest.importorskip("raydp", reason=NEEDS)
    import ray

    from flinkpy.spark import spark_session, stop_spark
    from flinkpy.spark.java import use_java

    use_java()  # before Ray: its nodes need one
    ray.init(
        address="local",
        num_cpus=4,
        object_store_memory=OBJECT_STORE_BYTES,
        include_dashboard=False,
        logging_level="error",
        log_to_driver=False,
    )
    try:
        yield spark_session(executors=1, cores=1, stream_cpus=2)
        stop_spark()
    finally:
        ray.shutdown()
