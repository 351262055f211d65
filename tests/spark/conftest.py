"""The broker and the S3 server, for what leads from them into Spark."""

from __future__ import annotations

from tests.kafka.conftest import broker
from tests.s3.conftest import bucket, s3_host

__all__ = ["broker", "bucket", "s3_host"]
