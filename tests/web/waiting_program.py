"""A program that runs a job which waits for checkpoints, with a REST endpoint, until its standard
input ends.

``python -m tests.web.waiting_program PORT TOKEN``
"""

from __future__ import annotations

import logging
import sys

from flinkpy.cluster.embedded import stop_embedded
from tests.waiting import eventually
from tests.web.rest import Rest, waiting_job


def main(port: str, token: str) -> None:
    """Prints the job's id when its tasks run."""
    logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
    rest, headers = Rest(int(port)), {"Authorization": f"Bearer {token}"}
    options = {
        "rest.enabled": "true",
        "rest.port": port,
        "rest.token": token,
        "execution.checkpointing.interval": "1 h",
    }
    with waiting_job(options) as client:
        job_id = str(client.get_job_id())
        eventually(
            lambda: (
                rest.ask(f"/jobs/{job_id}", headers=headers).json["status-counts"]["RUNNING"] == 1
            )
        )
        print(f"job {job_id}", flush=True)
        sys.stdin.read()
    stop_embedded()


if __name__ == "__main__":
    main(*sys.argv[1:])
