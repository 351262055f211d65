"""One broker for all Kafka tests of a worker process; topics have unique names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka.broker import Broker, running_broker
from tests.s3.conftest import bucket, s3_host

__all__ = ["broker", "bucket", "s3_host"]


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker
